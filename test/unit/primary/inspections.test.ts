import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { WatchdogRequest } from '../../../src/contract/messages.js';
import { Inspections } from '../../../src/primary/inspections.js';
import { WorkerHandle } from '../../../src/primary/worker-handle.js';
import { temporaryDirectory } from '../../support/temporary-directory.js';
import { knownWorker } from '../support/fake-worker.js';

beforeEach(() => vi.useFakeTimers());

const IDENTITY = { slot: 0, generation: 0, pid: 4242 };
const ANSWER = {
  type: 'stack',
  blockedForMs: 1_200,
  requests: [],
  frames: ['spin (/app/main.js:3:7)'],
  answered: true,
} as const;

/** A worker in slot 0, with the number 1 in the core. */
function start({ watchdog = true } = {}) {
  const asked: WatchdogRequest[] = [];
  const handle = new WorkerHandle(IDENTITY, {
    isConnected: () => true,
    send: () => true,
    kill: () => {},
    askWatchdog: watchdog ? (line) => void asked.push(JSON.parse(line)) : undefined,
  });
  handle.known = () => knownWorker({ state: 'ready' });
  const table = {
    state: { slots: [{ worker: 1 }, { worker: undefined }] },
    find: (id: number) => (id === 1 ? handle : undefined),
  };
  const inspections = new Inspections(table as never);
  const exit = (): void => {
    handle.known = () => undefined;
    inspections.ended(handle);
  };
  const recorded = (id: number, problem: string | null = null, top: string[] = []) =>
    inspections.answered({ type: 'recorded', id, problem, top });
  return { asked, exit, inspections, recorded };
}

describe('the stack of a worker', () => {
  it('is what its watchdog answers', async () => {
    const { asked, inspections } = start();
    const stack = inspections.stack(0);
    expect(asked).toEqual([{ type: 'stack', id: 1 }]);
    inspections.answered({ ...ANSWER, id: 1 });
    const { blockedForMs, requests, frames } = ANSWER;
    expect(await stack).toEqual({
      slot: 0,
      pid: 4242,
      blockedForMs,
      requests,
      frames,
      problem: null,
    });
  });

  it('is answered within a second by a worker that is stopped, and its late answer is dropped', async () => {
    const { inspections } = start();
    const first = inspections.stack(0);
    await vi.advanceTimersByTimeAsync(999);
    expect(await first).toMatchObject({ frames: [], problem: expect.stringContaining('stopped') });

    const second = inspections.stack(0);
    inspections.answered({ ...ANSWER, id: 1, frames: ['late'] });
    inspections.answered({ ...ANSWER, id: 2 });
    expect(await second).toMatchObject({ frames: ANSWER.frames });
  });

  it('is none of a worker that has ended meanwhile, nor in native code, and says so', async () => {
    const { exit, inspections } = start();
    const native = inspections.stack(0);
    inspections.answered({ ...ANSWER, id: 1, frames: [], answered: false });
    const problem = expect.stringContaining('native code') as string;
    expect(await native).toMatchObject({ blockedForMs: 1_200, problem });
    const ended = inspections.stack(0);
    exit();
    expect(await ended).toMatchObject({ problem: 'the worker has exited' });
  });

  it('is refused without a worker, and without a watchdog', async () => {
    const { inspections } = start({ watchdog: false });
    for (const [slot, status, code] of [
      [0, 409, 'NO_WATCHDOG'],
      [1, 404, 'NO_WORKER'],
      [9, 404, 'NO_WORKER'],
    ] as const) {
      await expect(inspections.stack(slot)).rejects.toMatchObject({ status, code });
    }
  });
});

describe('a profile of a worker', () => {
  const RECORDING = { kind: 'cpu-profile', seconds: 10 } as const;
  const directory = () => {
    vi.stubEnv('TMPDIR', temporaryDirectory());
    return join(process.env['TMPDIR']!, `nestjs-cluster-${process.geteuid!()}`);
  };
  /** Asks for a profile of a worker whose watchdog answers. */
  const begin = async () => {
    const own = directory();
    const started = start();
    const profile = started.inspections.record(0, RECORDING);
    profile.catch(() => {});
    started.inspections.answered({ ...ANSWER, id: 1 });
    await vi.advanceTimersByTimeAsync(0);
    return { ...started, own, profile };
  };

  it('is a new file in a directory of the user', async () => {
    const { own, asked, recorded, profile } = await begin();
    const { to, ...request } = asked[1] as { readonly to: string };
    expect(request).toEqual({ type: 'record', id: 2, ...RECORDING });
    expect(to).toMatch(/\/worker-0-pid-4242-\d{8}T\d{9}Z\.cpuprofile$/);
    expect([dirname(to), statSync(own).mode & 0o777]).toEqual([own, 0o700]);
    recorded(2);
    expect(await profile).toEqual({ file: to, top: '' });
  });

  it('is recorded once at a time', async () => {
    const { asked, inspections, recorded, profile } = await begin();
    await expect(inspections.record(0, RECORDING)).rejects.toMatchObject({ code: 'BUSY' });
    recorded(2);
    await profile;
    void inspections.record(0, RECORDING).catch(() => {});
    expect(asked.at(-1)).toMatchObject({ type: 'stack', id: 3 });
  });

  it('fails with the reason of the worker, in one line', async () => {
    const { recorded, profile } = await begin();
    recorded(2, 'ENOSPC: no space left, write');
    await expect(profile).rejects.toThrow(
      /^cannot write \S+\.cpuprofile: ENOSPC: no space left, write; set TMPDIR to use another directory$/,
    );
  });

  it('fails if its directory is open to other users', async () => {
    const own = directory();
    mkdirSync(own);
    const { asked, inspections } = start();
    await expect(inspections.record(0, RECORDING)).rejects.toThrow('is open to other users');
    expect(asked).toEqual([]);
  });

  it('fails as soon as the worker has ended', async () => {
    const { exit, profile } = await begin();
    exit();
    await expect(profile).rejects.toMatchObject({ status: 502, code: 'ENDED' });
  });

  it('fails in a second if the worker is stopped, and after its length in native code', async () => {
    directory();
    const { asked, inspections } = start();
    const stopped = inspections.record(0, RECORDING);
    stopped.catch(() => {});
    await vi.advanceTimersByTimeAsync(999);
    await expect(stopped).rejects.toThrow('the process is stopped');
    expect(asked).toHaveLength(1);

    const { profile } = await begin();
    await vi.advanceTimersByTimeAsync(20_000);
    await expect(profile).rejects.toThrow('native code');
  });

  it('of a worker above the soft limit is written once an hour for its slot, and the last five are kept', async () => {
    const own = directory();
    const { asked, inspections, recorded } = start();
    const profile = async (at: number) => {
      vi.advanceTimersByTime(at);
      const told = inspections.profileLarge(0);
      inspections.answered({ ...ANSWER, id: 2 * asked.length });
      inspections.answered({ ...ANSWER, id: asked.length });
      await vi.advanceTimersByTimeAsync(0);
      const request = asked.at(-1)!;
      if (request.type !== 'record') return told;
      writeFileSync(request.to, '{}', { flag: 'w' });
      recorded(request.id, null, ['9.0 MB in fill (/app/a.js:1:1)', '0.1 MB in Node']);
      return told;
    };
    const first = await profile(0);
    expect(first).toMatch(
      /^exceeds memory\.softLimitBytes and holds 9\.0 MB in fill \(\/app\/a\.js:1:1\), 0\.1 MB in Node; heap profile: \S+\.heapprofile$/,
    );
    expect(asked.at(-1)).toMatchObject({ kind: 'heap-profile', seconds: 0 });

    expect(await inspections.profileLarge(0)).toBeUndefined();
    for (let hours = 1; hours <= 6; hours += 1) await profile(3_600_000);
    expect(readdirSync(own)).toHaveLength(5);
    expect(readdirSync(own)).not.toContain(basename(first!));
  });

  it('that cannot be written is reported as such', async () => {
    directory();
    const { inspections } = start({ watchdog: false });
    expect(await inspections.profileLarge(0)).toMatch(
      /^exceeds memory\.softLimitBytes; no heap profile: worker=0 has no watchdog/,
    );
  });
});
