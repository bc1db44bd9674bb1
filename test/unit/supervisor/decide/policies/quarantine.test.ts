import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Fingerprint, NO_ROUTE } from '../../../../../src/contract/ipc/index.js';
import { TRIAL_MS } from '../../../../../src/supervisor/decide/policies/quarantine.policy.js';
import { Quarantine } from '../../../../../src/supervisor/serve/quarantine.js';
import { FakeWorker } from '../../../support/fake-worker.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const WATCHED_MS = 5 * 60_000;
const KILLER: Fingerprint = { method: 'GET', route: '/a/:id', url: '7', path: '/a/7' };
const OTHER: Fingerprint = { method: 'GET', route: '/b', url: 'b', path: '/b' };
const ENTRY = { id: 1, method: 'GET', route: '/a/:id', url: '7' };

function start() {
  const workers = [0, 1, 2, 3].map((slot) => new FakeWorker({ slot }));
  for (const { handle } of workers) handle.hasSocket = true;
  const table = { workers: workers.map(({ handle }) => handle), quarantined: 0 };
  const emit = vi.fn();
  const quarantine = new Quarantine(table, emit);
  /** The last `quarantine` message that the worker was sent. */
  const told = (slot: number) => workers[slot]!.sent('quarantine').at(-1);
  return {
    quarantine,
    table,
    emit,
    told,
    workers: workers.map(({ handle }) => handle),
    begin: (slot: number, n: number, began: Fingerprint) =>
      quarantine.hear(workers[slot]!.handle, { type: 'flight', n, began, ended: [] }),
    answered: (slot: number, n: number) =>
      quarantine.hear(workers[slot]!.handle, { type: 'flight', n: 0, ended: [n] }),
    /** Its process ends, as the core tells it; a new one has its place, and its pid. */
    die: (slot: number, cause: 'oom' | 'killed' | 'hang' = 'oom') => {
      const { handle } = workers[slot]!;
      quarantine.observe('worker-died', {
        worker: handle.identity,
        cause,
        detail: '',
        uptimeMs: 1,
        error: null,
        blocked: null,
      });
    },
  };
}

/** Two workers have ended over the same request. */
function startWithOne() {
  const started = start();
  for (const slot of [0, 1]) {
    started.begin(slot, 1, KILLER);
    started.die(slot);
  }
  return started;
}

describe('the primary and requests that end workers', () => {
  it('has workers watch their requests for five minutes after an end', () => {
    const { quarantine, told, die } = start();
    die(0);
    expect(told(3)).toMatchObject({ watch: true, entries: [] });
    vi.advanceTimersByTime(WATCHED_MS);
    quarantine.tick();
    expect(told(3)).toMatchObject({ watch: false, entries: [] });
  });

  it('knows what was at work in a worker that ended without a word', () => {
    const { told, emit, table } = startWithOne();
    expect(told(3)).toMatchObject({ entries: [{ ...ENTRY, trial: false }] });
    expect(table.quarantined).toBe(1);
    const { method, route, path } = KILLER;
    expect(emit.mock.calls).toEqual([
      ['quarantined', { method, route, path, wholeRoute: false, deaths: 2 }],
    ]);
  });

  it('names no route for a path without one', () => {
    const { begin, die, emit } = start();
    for (const slot of [0, 1]) {
      begin(slot, 1, { method: 'GET', route: NO_ROUTE, url: 'hash', path: '/graphql' });
      die(slot);
    }
    const request = { method: 'GET', route: null, path: '/graphql' };
    expect(emit.mock.calls).toEqual([
      ['quarantined', { ...request, wholeRoute: false, deaths: 2 }],
    ]);
  });

  it('asks the watchdogs of the others what they are at: they may be blocked by the same request', () => {
    const { workers, die } = start();
    const asked = workers.map((worker) => vi.spyOn(worker, 'askWatchdog'));
    die(0, 'hang');
    expect(asked.map(({ mock }) => mock.calls)).toEqual([
      [],
      ...Array.from({ length: 3 }, () => [[{ type: 'report-block' }]]),
    ]);
  });

  it('rather believes what the worker said it ends over', () => {
    const { quarantine, workers, begin, die, emit } = start();
    for (const slot of [0, 1]) {
      begin(slot, 1, OTHER);
      quarantine.hear(workers[slot]!, { type: 'suspects', certain: true, suspects: [KILLER] });
      die(slot);
    }
    expect(emit.mock.calls).toMatchObject([['quarantined', { path: '/a/7' }]]);
  });

  it('forgets what it said of a block that has passed', () => {
    const { quarantine, workers, die, emit } = start();
    for (const slot of [0, 1]) {
      quarantine.hear(workers[slot]!, { type: 'suspects', certain: false, suspects: [KILLER] });
      quarantine.resumed(workers[slot]!);
      die(slot);
    }
    expect(emit).not.toHaveBeenCalled();
  });

  it('suspects no request that was answered, and none for a kill from outside', () => {
    const { begin, answered, die, emit } = start();
    begin(0, 1, KILLER);
    answered(0, 1);
    die(0);
    begin(1, 1, KILLER);
    die(1);
    begin(2, 1, KILLER);
    die(2, 'killed');
    expect(emit).not.toHaveBeenCalled();
  });

  it('forgets a worker that has ended: one with the same pid is judged anew', () => {
    const { begin, die, emit } = start();
    for (let lives = 0; lives < 2; lives += 1) {
      begin(0, 1, KILLER);
      die(0);
    }
    expect(emit.mock.calls).toMatchObject([['quarantined', { path: '/a/7', deaths: 2 }]]);
  });

  it('greets a new worker with what it keeps from the app', () => {
    const { quarantine, workers, told } = startWithOne();
    const before = told(2);
    quarantine.greet(workers[2]!);
    expect(told(2)).toEqual(before);
    expect(told(2)).not.toBe(before);
  });

  it('has one worker try the request each minute, and ends the quarantine once that lives', () => {
    const { quarantine, workers, told, emit, table } = startWithOne();
    vi.advanceTimersByTime(TRIAL_MS - 1);
    quarantine.tick();
    const triers = () => workers.filter((_, slot) => told(slot)!.entries[0]!.trial);
    expect(triers()).toEqual([]);
    vi.advanceTimersByTime(1);
    quarantine.tick();
    const [first] = triers();
    expect(triers()).toHaveLength(1);
    vi.advanceTimersByTime(TRIAL_MS);
    quarantine.tick();
    const [second] = triers();
    expect(triers()).toHaveLength(1);
    expect(second).not.toBe(first);

    quarantine.hear(second!, { type: 'trial', id: 1, lived: false });
    quarantine.hear(second!, { type: 'trial', id: 1, lived: true });
    expect(told(3)).toMatchObject({ entries: [] });
    expect(table.quarantined).toBe(0);
    expect(emit.mock.calls.at(-1)).toMatchObject(['quarantine-ended', { path: '/a/7' }]);
  });

  it('keeps the quarantine where the trial ends its worker', () => {
    const { quarantine, workers, told, die, emit } = startWithOne();
    quarantine.hear(workers[2]!, { type: 'trial', id: 1, lived: false });
    die(2);
    expect(told(3)).toMatchObject({ entries: [ENTRY] });
    expect(emit.mock.calls.map(([name]: unknown[]) => name)).toEqual(['quarantined']);
  });
});
