import { describe, expect, it } from 'vitest';
import type { LoadReport } from '../../../src/contract/messages.js';
import { Balance, BALANCE_TICK_MS } from '../../../src/primary/balance.js';
import type { WorkerTable } from '../../../src/primary/worker-table.js';
import { FakeWorker } from '../support/fake-worker.js';

/** A million requests are the mean: chance explains nothing. */
const load = (share: number): LoadReport => ({
  requests: share * 1_000_000,
  connections: 20,
  utilization: share * 0.2,
});

function start(workers = 2) {
  const all = Array.from({ length: workers }, (_, slot) => new FakeWorker({ slot }));
  const present = [...all];
  const table = {
    get workers() {
      return present.map(({ handle }) => handle).filter(({ state }) => state !== 'exited');
    },
  };
  const balance = new Balance(table as unknown as WorkerTable);
  const asked = (worker: FakeWorker) => worker.sent('report-load').length;
  return {
    balance,
    /** The first workers. */
    all,
    /** Another one comes. */
    add: (slot: number, state: 'starting' | 'ready') => {
      const worker = new FakeWorker({ slot, state });
      present.push(worker);
      return worker;
    },
    asked,
    /** A worker, or the first one of that slot, says what it carries. */
    report: (worker: FakeWorker | number, share: number) => {
      const { handle } = typeof worker === 'number' ? all[worker]! : worker;
      balance.report(handle, load(share));
    },
    ticks: (count: number) => {
      for (let tick = 0; tick < count; tick += 1) balance.tick();
    },
    /** How often each of the first workers was asked for its load. */
    get rounds() {
      return all.map(asked);
    },
    /** The ratios that each of the first workers was asked to give away, rounded. */
    get given() {
      return all.map((worker) =>
        worker.sent('give-away').map(({ ratio }) => Math.round(ratio * 1_000) / 1_000),
      );
    },
    /** Ticks until a round begins; the first workers answer it, as far as there are shares. */
    round: (...shares: number[]): number => {
      const before = asked(all[0]!);
      let ticks = 0;
      while (asked(all[0]!) === before) {
        balance.tick();
        ticks += 1;
        if (ticks > 100) throw new Error('no round in 100 ticks');
      }
      shares.forEach((share, slot) => balance.report(all[slot]!.handle, load(share)));
      return ticks;
    },
  };
}

/** So many times these rounds. */
const times = (count: number, ...rounds: number[][]) =>
  Array.from({ length: count }, () => rounds).flat();

describe('rounds of workers with these shares', () => {
  it.each<[what: string, rounds: number[][], given: number[][]]>([
    ['tell whoever carries too much to give it away', [[1.5, 1, 0.5]], [[0.333], [], []]],
    ['tell several where several carry too much', [[1.5, 1.5, 0]], [[0.333], [0.333], []]],
    ['tell nobody where all carry the same', times(10, [1, 1, 1]), [[], [], []]],
    ['decide nothing on the word of one alone', [[2], [2]], [[], []]],
    ['do not act on a small surplus at once', [[1.1, 0.9]], [[], []]],
    ['act on a small surplus in its second round', times(2, [1.1, 0.9]), [[0.091], []]],
    ['want a small surplus to last in a row', times(5, [1.1, 0.9], [1, 1]), [[], []]],
    ['know whose surplus it was', times(5, [1.1, 0.9], [0.9, 1.1]), [[], []]],
  ])('%s', (_, rounds, given) => {
    const started = start(given.length);
    for (const shares of rounds) started.round(...shares);
    expect(started.given).toEqual(given);
  });
});

describe('a round', () => {
  it('asks every worker that is ready, also a candidate, and neither who starts nor who leaves', () => {
    const { add, balance, all, asked, given } = start(4);
    const others = [add(0, 'ready'), add(3, 'starting')];
    all[2]!.enter('draining');
    balance.tick();
    expect([...all, ...others].map(asked)).toEqual([1, 1, 0, 1, 1, 0]);
    expect(given).toEqual([[], [], [], []]);
  });

  it('is decided once the last has answered, not before', () => {
    const started = start(3);
    started.round(2, 0.5);
    expect(started.given[0]).toEqual([]);
    started.report(2, 0.5);
    expect(started.given[0]).toEqual([0.5]);
  });

  it('takes the last that a worker says, and is over with the decision', () => {
    const started = start(2);
    started.round(0.1);
    started.report(0, 1.5);
    for (let i = 0; i < 2; i += 1) started.report(1, 0.5);
    started.report(0, 1.9);
    expect(started.given).toEqual([[0.333], []]);
  });

  it('leaves out who does not answer by the next round, and asks it again', () => {
    const started = start(3);
    started.round(1.5, 0.5);
    expect(started.given[0]).toEqual([]);
    started.round();
    expect(started.given[0]).toEqual([0.333]);
    expect(started.rounds).toEqual([2, 2, 2]);
  });

  it('leaves out who does not take what it is sent, and asks it nothing more', () => {
    const started = start(3);
    const blocked = started.all[2]!;
    blocked.clogged = true;
    blocked.handle.send({ type: 'ping', seq: 1 });
    for (let i = 0; i < 3; i += 1) started.round(1.5, 0.5);
    expect(started.rounds).toEqual([3, 3, 0]);
    expect(started.given[0]).toEqual([0.333, 0.333]);
  });

  it('does not take a late answer for one of the next round', () => {
    const started = start(2);
    started.round(1.5);
    started.round();
    // The answer to the round before it is all that is known of the second.
    started.report(1, 0.5);
    expect(started.given[0]).toEqual([]);
    started.report(0, 1.5);
    expect(started.given[0]).toEqual([0.333]);
  });

  it('leaves out who began to drain after it had answered', () => {
    const started = start(3);
    started.round(3, 1.5);
    started.all[0]!.enter('draining');
    started.report(2, 0.5);
    // The mean is computed from the two workers that stay.
    expect(started.given).toEqual([[], [0.333], []]);
  });

  it('leaves out who has died, and ends all the same', () => {
    const started = start(3);
    started.round(1.5, 0.5);
    started.all[2]!.enter('exited');
    started.all[2]!.connected = false;
    started.round();
    expect(started.given).toEqual([[0.333], [], []]);
    expect(started.rounds).toEqual([2, 2, 1]);
  });

  it('takes no report from a worker that it has not asked', () => {
    const started = start(2);
    started.report(0, 5);
    started.round(1);
    const late = started.add(0, 'ready');
    started.report(late, 0);
    started.report(1, 1);
    expect(started.given).toEqual([[], []]);
    // It is asked in the next.
    started.round(1.5, 1.5);
    started.report(late, 0);
    expect(started.given).toEqual([[0.333], [0.333]]);
  });
});

describe('a surplus', () => {
  it('is not that of the next worker of the slot', () => {
    const started = start(2);
    started.round(1.1, 0.9);
    const next = started.add(0, 'ready');
    started.all[0]!.enter('exited');
    started.ticks(4);
    started.report(next, 1.1);
    started.report(1, 0.9);
    expect(next.sent('give-away')).toEqual([]);
  });

  it('that does not shrink is acted on ever less, until there is a worker that may help', () => {
    const started = start(2);
    for (let i = 0; i < 64; i += 1) started.round(2, 0);
    expect(started.given[0]).toHaveLength(20 + 2);
    started.balance.workerJoined();
    started.round(2, 0);
    expect(started.given[0]).toHaveLength(20 + 2 + 1);
  });

  it('is acted on anew once it was gone', () => {
    const started = start(2);
    for (let i = 0; i < 40; i += 1) started.round(2, 0);
    const before = started.given[0]!.length;
    started.round(1, 1);
    started.round(2, 0);
    started.round(2, 0);
    expect(started.given[0]).toHaveLength(before + 2);
  });
});

describe('rounds', () => {
  it.each<[what: string, rounds: number[][], ticks: number[]]>([
    ['by four ticks while all is calm', times(3, [1, 1]), [1, 4, 4]],
    ['by four ticks where the surplus is small', times(3, [1.1, 0.9]), [1, 4, 4]],
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
      'calmly where a clear surplus is not acted on any more',
      times(22, [2, 0]),
      [...Array<number>(21).fill(1), 4],
    ],
  ])('follow one another %s', (_, rounds, ticks) => {
    const started = start(2);
    expect(rounds.map((shares) => started.round(...shares))).toEqual(ticks);
    expect(4 * BALANCE_TICK_MS).toBe(1_000);
  });

  it('do not wait once a worker has become ready', () => {
    const started = start(2);
    started.round(1, 1);
    started.balance.workerJoined();
    expect([started.round(1, 1), started.round(1, 1)]).toEqual([1, 4]);
  });
});

describe('a cluster of one', () => {
  it('costs no message, and its rounds begin once its second worker is ready', () => {
    const { add, balance, all, asked, ticks } = start(1);
    ticks(20);
    const second = add(1, 'starting');
    ticks(20);
    expect([all[0]!, second].map(asked)).toEqual([0, 0]);
    second.enter('ready');
    balance.workerJoined();
    ticks(1);
    expect([all[0]!, second].map(asked)).toEqual([1, 1]);
  });

  it('is one that was larger: a round that was under way tells the one left nothing', () => {
    const started = start(2);
    started.round(2);
    started.all[1]!.enter('exited');
    started.ticks(20);
    started.report(0, 2);
    expect(started.rounds).toEqual([1, 1]);
    expect(started.given[0]).toEqual([]);
  });
});
