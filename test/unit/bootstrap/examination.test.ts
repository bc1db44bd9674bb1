import { Injectable } from '@nestjs/common';
import { Cron, ScheduleModule } from '@nestjs/schedule';
import { describe, expect, it, vi } from 'vitest';
import { warnAtStart } from '../../../src/bootstrap/examination.js';
import type { OwnAssignment } from '../../../src/contract/ipc/assignment.js';
import { type WarningOptions, resolveOptions } from '../../../src/contract/options/index.js';
import type { WorkerLink } from '../../../src/worker/link/worker-link.js';
import { appOf } from '../support/app-findings.js';

interface Start {
  readonly slot: number;
  readonly workers: number;
  readonly warnings?: WarningOptions | false;
}

/** Starts a worker whose app has a scheduled job. @returns its warnings. */
async function warningsOf({ slot, workers, warnings }: Start): Promise<string[]> {
  @Injectable()
  class Reports {
    @Cron('0 3 * * *') nightly() {}
  }
  const app = await appOf({ imports: [ScheduleModule.forRoot()], providers: [Reports] });
  const warn = vi.fn<(line: string) => void>();
  const link = { warn } as unknown as WorkerLink;
  const assignment = { identity: { slot }, workers } as unknown as OwnAssignment;
  await warnAtStart(app, link, resolveOptions({ warnings }), assignment);
  return warn.mock.calls.map(([line]) => line);
}

describe('the start of a cluster', () => {
  it('has one of its workers tell what does not fit several', async () => {
    const [line, ...more] = await warningsOf({ slot: 1, workers: 2 });
    expect(line).toMatch(/^scheduled jobs run in every worker; /);
    expect(more).toEqual([]);
    expect(await warningsOf({ slot: 0, workers: 2 })).toEqual([]);
  });

  it.each<Start & { what: string }>([
    { what: 'with one worker', slot: 0, workers: 1 },
    { what: 'where warnings is false', slot: 1, workers: 2, warnings: false },
    { what: 'where it is ignored', slot: 1, workers: 2, warnings: { ignore: ['scheduled-jobs'] } },
  ])('warns of nothing $what', async (start) => {
    expect(await warningsOf(start)).toEqual([]);
  });
});
