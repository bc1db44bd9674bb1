import { describe, expect, it } from 'vitest';
import { Balance } from '../../../src/primary/balance.js';
import type { WorkerTable } from '../../../src/primary/worker-table.js';
import { FakeWorker } from '../support/fake-worker.js';

function start(count = 2) {
  const workers = Array.from({ length: count }, (_, slot) => new FakeWorker({ slot }));
  const present = [...workers];
  const table = {
    get workers() {
      return present.map(({ handle }) => handle).filter(({ state }) => state !== 'exited');
    },
  };
  const balance = new Balance(table as unknown as WorkerTable);
  /** A worker, or the first one of that slot, reports its share of the load. */
  const report = (worker: FakeWorker | number, share: number): void => {
    const { handle } = typeof worker === 'number' ? workers[worker]! : worker;
    // A million requests are the mean: chance explains nothing.
    const requests = share * 1_000_000;
    balance.report(handle, { requests, connections: 20, utilization: share * 0.2 });
  };
  const asked = (worker: FakeWorker) => worker.sent('report-load').length;
  return {
    balance,
    workers,
    report,
    asked,
    add: (slot: number, state: 'starting' | 'ready') => {
      const worker = new FakeWorker({ slot, state });
      present.push(worker);
      return worker;
    },
    ticks: (count: number) => {
      for (let tick = 0; tick < count; tick += 1) balance.tick();
    },
    /** How often each of the first workers was asked for its load. */
    rounds: () => workers.map(asked),
    /** The ratios that each of the first workers was asked to give away, rounded. */
    given: () =>
      workers.map((worker) =>
        worker.sent('give-away').map(({ ratio }) => Math.round(ratio * 1_000) / 1_000),
      ),
    /** Ticks until a round begins. The first workers answer it, as far as there are shares. */
    round: (...shares: number[]): number => {
      const before = asked(workers[0]!);
      let ticks = 0;
      while (asked(workers[0]!) === before) {
        balance.tick();
        ticks += 1;
        if (ticks > 100) throw new Error('no round in 100 ticks');
      }
      shares.forEach((share, slot) => report(slot, share));
      return ticks;
    },
  };
}

const times = (count: number, ...rounds: number[][]) =>
  Array.from({ length: count }, () => rounds).flat();

it.each<[what: string, rounds: number[][], given: number[][]]>([
  ['whoever has too much gives it away', [[1.5, 1, 0.5]], [[0.333], [], []]],
  ['several workers may have too much', [[1.5, 1.5, 0]], [[0.333], [0.333], []]],
  ['nothing is given away if all have the same', times(10, [1, 1, 1]), [[], [], []]],
  ['a single report decides nothing', [[2], [2]], [[], []]],
  ['a small surplus is given away in its second round', times(2, [1.1, 0.9]), [[0.091], []]],
  ['a small surplus must last', times(5, [1.1, 0.9], [1, 1]), [[], []]],
  ['a small surplus must be of the same worker', times(5, [1.1, 0.9], [0.9, 1.1]), [[], []]],
])('%s', (_, rounds, given) => {
  const started = start(given.length);
  for (const shares of rounds) started.round(...shares);
  expect(started.given()).toEqual(given);
});

describe('a round', () => {
  it('asks every ready worker, also a candidate', () => {
    const { add, balance, workers, asked, given } = start(4);
    const others = [add(0, 'ready'), add(3, 'starting')];
    workers[2]!.enter('draining');
    balance.tick();
    expect([...workers, ...others].map(asked)).toEqual([1, 1, 0, 1, 1, 0]);
    expect(given()).toEqual([[], [], [], []]);
  });

  it('leaves out a worker that has not answered by the next round, and asks it again', () => {
    const { round, report, given, rounds } = start(3);
    round(1.5, 0.5);
    expect(given()).toEqual([[], [], []]);
    round();
    expect([given()[0], rounds()]).toEqual([[0.333], [2, 2, 2]]);
    // The late answer counts for the round that is under way.
    for (const slot of [2, 1, 0]) report(slot, 1);
    expect(given()[0]).toEqual([0.333]);
  });

  it('leaves out a worker that reads no messages, and does not ask it again', () => {
    const { round, workers, rounds, given } = start(3);
    workers[2]!.clogged = true;
    workers[2]!.handle.send({ type: 'ping', seq: 1 });
    for (let i = 0; i < 3; i += 1) round(1.5, 0.5);
    expect([rounds(), given()[0]]).toEqual([
      [3, 3, 0],
      [0.333, 0.333],
    ]);
  });

  it('leaves out a worker that began to drain or died after it had answered', () => {
    for (const state of ['draining', 'exited'] as const) {
      const { round, workers, report, given } = start(3);
      round(3, 1.5);
      workers[0]!.enter(state);
      report(2, 0.5);
      // The mean is computed from the two workers that stay.
      expect(given()).toEqual([[], [0.333], []]);
    }
  });

  it('takes no report of a worker that it has not asked', () => {
    const { add, round, report, given } = start(2);
    report(0, 5);
    round(1);
    const late = add(0, 'ready');
    report(late, 0);
    report(1, 1);
    expect(given()).toEqual([[], []]);
    round(1.5, 1.5);
    report(late, 0);
    expect(given()).toEqual([[0.333], [0.333]]);
  });
});

it('a surplus that does not shrink is given away less and less often, until a worker joins', () => {
  const { round, given, balance } = start(2);
  for (let i = 0; i < 64; i += 1) round(2, 0);
  expect(given()[0]).toHaveLength(22);
  balance.workerJoined();
  round(2, 0);
  expect(given()[0]).toHaveLength(23);
});

describe('the next round begins', () => {
  it.each<[what: string, rounds: number[][], ticks: number[]]>([
    ['after four ticks if the surplus is small', times(3, [1.1, 0.9]), [1, 4, 4]],
    [
      'at the next tick after a clear surplus',
      [
        [2, 0],
        [1.5, 0.5],
        [1, 1],
        [1, 1],
      ],
      [1, 1, 1, 4],
    ],
    [
      'after four ticks if a clear surplus is not given away',
      times(22, [2, 0]),
      [...Array<number>(21).fill(1), 4],
    ],
  ])('%s', (_, rounds, ticks) => {
    const { round } = start(2);
    expect(rounds.map((shares) => round(...shares))).toEqual(ticks);
  });

  it('at the next tick after a worker has joined', () => {
    const { round, balance } = start(2);
    round(1, 1);
    balance.workerJoined();
    expect([round(1, 1), round(1, 1)]).toEqual([1, 4]);
  });
});

it('a single worker is asked nothing until the second worker is ready', () => {
  const { add, balance, workers, asked, ticks } = start(1);
  const second = add(1, 'starting');
  ticks(20);
  expect([workers[0]!, second].map(asked)).toEqual([0, 0]);
  second.enter('ready');
  balance.workerJoined();
  ticks(1);
  expect([workers[0]!, second].map(asked)).toEqual([1, 1]);
});
