import { Injectable } from '@nestjs/common';
import { Cron, ScheduleModule } from '@nestjs/schedule';
import { expect, it, onTestFinished, vi } from 'vitest';
import { bootstrap } from '../../../../src/bootstrap/bootstrap.js';
import { warnOfFindings } from '../../../../src/bootstrap/roles/run-worker.js';
import { resolveOptions, type WarningOptions } from '../../../../src/contract/options/resolve.js';
import { appOf } from '../../support/nest-app.js';

@Injectable()
class Reports {
  @Cron('0 3 * * *') nightly() {}
}

const APP = { imports: [ScheduleModule.forRoot()], providers: [Reports] };

it.each<{ slot: number; warnings: WarningOptions | false | undefined; count: number }>([
  { slot: 1, warnings: undefined, count: 1 },
  // The only worker has slot 0. With several workers, slot 1 warns for all.
  { slot: 0, warnings: undefined, count: 0 },
  { slot: 1, warnings: false, count: 0 },
  { slot: 1, warnings: { ignore: ['scheduled-jobs'] }, count: 0 },
])('the worker in slot $slot with warnings: $warnings warns $count times', async (each) => {
  const { slot, warnings, count } = each;
  const warn = vi.fn<(line: string) => void>();
  const link = { warn, identity: { slot, pid: 1, generation: 0 } };

  await warnOfFindings(await appOf(APP), link, resolveOptions({ warnings }).warnings);

  expect(warn.mock.calls).toEqual(
    Array.from({ length: count }, () => [
      expect.stringMatching(/^scheduled jobs run in every worker: /),
    ]),
  );
});

it('an app is passed to the function that the doctor has set, and starts no workers', async () => {
  const examine = vi.fn<(app: object, start: object) => void>();
  const EXAMINE = Symbol.for('nestjs-cluster.examine');
  Object.assign(globalThis, { [EXAMINE]: examine });
  onTestFinished(() => void Reflect.deleteProperty(globalThis, EXAMINE));
  const options = { workers: 3, port: 1, warnings: { ignore: ['cache'] }, log: { level: 'error' } };

  const runtime = await bootstrap(async () => {
    const app = await appOf(APP);
    app.enableShutdownHooks(['SIGTERM']);
    return app;
  }, options as never);

  expect(runtime).toMatchObject({
    role: 'standalone',
    url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d\d+/),
  });
  expect(examine).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ socketServers: [] }), {
    findings: [expect.objectContaining({ name: 'scheduled-jobs' })],
    warnings: [expect.stringContaining('enableShutdownHooks()')],
    ignored: ['cache'],
    workers: 3,
  });
});
