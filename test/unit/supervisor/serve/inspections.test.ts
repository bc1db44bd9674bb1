import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { WatchdogRequest } from '../../../../src/contract/ipc/index.js';
import { Inspections } from '../../../../src/supervisor/serve/inspections.js';
import { WorkerHandle } from '../../../../src/supervisor/processes/worker-handle.js';
import { knownWorker } from '../../support/fake-worker.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const IDENTITY = { slot: 0, generation: 0, pid: 4242 };
const MEMORY = { softLimitBytes: Infinity, hardLimitBytes: Infinity };
const ANSWER = {
  type: 'stack',
  blockedForMs: 1_200,
  requests: [],
  frames: ['spin (/app/main.js:3:7)'],
  answered: true,
} as const;

/** A worker in slot 0, that the core knows as 1. */
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
  const replace = async () => ({ outcome: 'aborted', slot: 0, reason: 'it crashed' }) as const;
  return { asked, handle, inspections: new Inspections(table as never, MEMORY, replace) };
}

describe('the stack of a worker', () => {
  it('is asked for once, whoever wants it, and again afterwards', async () => {
    const { asked, inspections } = start();
    const both = Promise.all([inspections.stack(0), inspections.stack(0)]);
    expect(asked).toEqual([{ type: 'stack', id: 1 }]);
    inspections.answered(1, { ...ANSWER, id: 1 });
    const { blockedForMs, requests, frames } = ANSWER;
    const stack = { slot: 0, pid: 4242, blockedForMs, requests, frames, problem: null };
    expect(await both).toEqual([stack, stack]);
    void inspections.stack(0);
    expect(asked).toHaveLength(2);
  });

  it('is answered within a second by a worker that is stopped, and its late answer is dropped', async () => {
    const { inspections } = start();
    const first = inspections.stack(0);
    await vi.advanceTimersByTimeAsync(999);
    expect(await first).toMatchObject({ frames: [], problem: expect.stringContaining('stopped') });

    const second = inspections.stack(0);
    inspections.answered(1, { ...ANSWER, id: 1, frames: ['late'] });
    inspections.answered(1, { ...ANSWER, id: 2 });
    expect(await second).toMatchObject({ frames: ANSWER.frames });
  });

  it('is none of a worker that has ended meanwhile', async () => {
    const { handle, inspections } = start();
    const stack = inspections.stack(0);
    handle.known = () => undefined;
    await vi.advanceTimersByTimeAsync(999);
    expect(await stack).toMatchObject({ problem: 'the worker has ended by now' });
  });

  it('is none in native code, and says so', async () => {
    const { inspections } = start();
    const stack = inspections.stack(0);
    inspections.answered(1, { ...ANSWER, id: 1, frames: [], answered: false });
    expect(await stack).toMatchObject({
      blockedForMs: 1_200,
      problem: expect.stringContaining('native code'),
    });
  });

  it('is refused without a worker, and without a watchdog', async () => {
    const { inspections } = start({ watchdog: false });
    for (const [slot, failure] of [
      [0, 'no-watchdog'],
      [1, 'no-worker'],
      [9, 'no-worker'],
    ] as const) {
      await expect(inspections.stack(slot)).rejects.toMatchObject({ failure });
    }
  });
});
