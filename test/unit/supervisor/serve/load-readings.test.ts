import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { loadReader } from '../../../../src/supervisor/serve/load-readings.js';
import { FakeWorker, knownWorker, STATS } from '../../support/fake-worker.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const NO_SOCKETS = { sockets: [] };
const MB = 1e6;

function ready(pid: number, eventLoopUtilization: number, pingedAgoMs = 0): FakeWorker {
  const worker = new FakeWorker({ pid, state: 'ready' });
  worker.handle.report({ ...STATS, eventLoopUtilization });
  const sentAt = performance.now() - pingedAgoMs;
  worker.handle.known = () => knownWorker({ state: 'ready', ping: { seq: 1, sentAt } });
  return worker;
}

const handlesOf = (...workers: readonly FakeWorker[]) => workers.map(({ handle }) => handle);

it('is the mean of the workers that are ready; one that does not answer is busy', () => {
  const starting = new FakeWorker({ pid: 9, state: 'starting' });
  const workers = handlesOf(ready(1, 0.2), ready(2, 0.4), ready(3, 0, 2_000), starting);

  const load = loadReader(
    { workers },
    NO_SOCKETS,
    () => Infinity,
    () => 0,
  )();

  expect(load.utilization).toBeCloseTo((0.2 + 0.4 + 1) / 3);
  expect(load.waiting).toBe(0);
});

it('is that of the threads where they are busier than the event loop', () => {
  const worker = ready(1, 0.2);
  worker.handle.report({ ...STATS, eventLoopUtilization: 0.2, threadUtilization: 0.9 });

  const load = loadReader({ workers: handlesOf(worker) }, NO_SOCKETS)();

  expect(load.utilization).toBe(0.9);
});

it('has room if the memory holds two more of the largest worker', () => {
  const workers = handlesOf(ready(1, 0), ready(2, 0));
  const sizes = new Map([
    [1, 150 * MB],
    [2, 200 * MB],
    [process.pid, 60 * MB],
  ]);
  const hasRoom = (limitBytes: number) =>
    loadReader(
      { workers },
      NO_SOCKETS,
      () => limitBytes,
      (pid) => sizes.get(pid),
    )().hasRoom;

  expect(hasRoom(810 * MB)).toBe(true);
  expect(hasRoom(809 * MB)).toBe(false);
});
