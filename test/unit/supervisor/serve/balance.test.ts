import { describe, expect, it } from 'vitest';
import type { LoadReport } from '../../../../src/contract/ipc/index.js';
import { Balance, BALANCE_TICK_MS } from '../../../../src/supervisor/serve/balance.js';
import type { WorkerTable } from '../../../../src/supervisor/processes/worker-table.js';
import { FakeWorker } from '../../support/fake-worker.js';

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
  const report = (worker: FakeWorker, share: number) => balance.report(worker.handle, load(share));
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
    report,
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
    /** Ticks until a round begins; all answer it. */
    round: (...shares: number[]): number => {
      const before = asked(all[0]!);
      let ticks = 0;
      while (asked(all[0]!) === before) {
        balance.tick();
        ticks += 1;
        if (ticks > 100) throw new Error('no round in 100 ticks');
      }
      shares.forEach((share, slot) => report(all[slot]!, share));
      return ticks;
    },
  };
}

describe('a round', () => {
  it('asks every worker that is ready what it carries', () => {
    const started = start(3);
    started.balance.tick();
    expect(started.rounds).toEqual([1, 1, 1]);
    expect(started.given).toEqual([[], [], []]);
  });

  it('asks neither who starts, nor who leaves', () => {
    const { add, balance, all, asked } = start(4);
    const starting = add(3, 'starting');
    all[2]!.enter('draining');
    balance.tick();
    expect([...all, starting].map(asked)).toEqual([1, 1, 0, 1, 0]);
  });

  it('asks a candidate that is ready: it has connections too', () => {
    const { add, balance, asked } = start(2);
    const candidate = add(0, 'ready');
    balance.tick();
    expect(asked(candidate)).toBe(1);
  });

  it('tells whoever carries too much to give it away, and nobody else', () => {
    const started = start(3);
    started.round(1.5, 1, 0.5);
    expect(started.given).toEqual([[0.333], [], []]);
  });

  it('tells several where several carry too much', () => {
    const started = start(3);
    started.round(1.5, 1.5, 0);
    expect(started.given).toEqual([[0.333], [0.333], []]);
  });

  it('tells nobody anything where all carry the same', () => {
    const started = start(3);
    for (let i = 0; i < 10; i += 1) started.round(1, 1, 1);
    expect(started.given).toEqual([[], [], []]);
  });

  it('is decided once the last has answered, not before', () => {
    const started = start(3);
    started.round();
    started.report(started.all[0]!, 2);
    started.report(started.all[1]!, 0.5);
    expect(started.given[0]).toEqual([]);
    started.report(started.all[2]!, 0.5);
    expect(started.given[0]).toEqual([0.5]);
  });

  it('takes the last that a worker says, and is over with the decision', () => {
    const started = start(2);
    started.round();
    started.report(started.all[0]!, 0.1);
    started.report(started.all[0]!, 1.5);
    started.report(started.all[1]!, 0.5);
    started.report(started.all[1]!, 0.5);
    started.report(started.all[0]!, 1.9);
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
    started.report(started.all[1]!, 0.5);
    expect(started.given[0]).toEqual([]);
    started.report(started.all[0]!, 1.5);
    expect(started.given[0]).toEqual([0.333]);
  });

  it('decides nothing on the word of one alone', () => {
    const started = start(2);
    started.round(2);
    started.round(2);
    expect(started.given).toEqual([[], []]);
  });

  it('leaves out who began to drain after it had answered', () => {
    const started = start(3);
    started.round();
    started.report(started.all[0]!, 3);
    started.report(started.all[1]!, 1.5);
    started.all[0]!.enter('draining');
    started.report(started.all[2]!, 0.5);
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
    const { add, balance, all } = started;
    balance.report(all[0]!.handle, load(5));
    started.round(1);
    const late = add(0, 'ready');
    started.report(late, 0);
    started.report(all[1]!, 1);
    expect(started.given).toEqual([[], []]);
    // It is asked in the next.
    started.round(1.5, 1.5);
    started.report(late, 0);
    expect(started.given).toEqual([[0.333], [0.333]]);
  });
});

describe('a surplus', () => {
  it('that is small is acted on once it has lasted two rounds', () => {
    const started = start(2);
    started.round(1.1, 0.9);
    expect(started.given[0]).toEqual([]);
    started.round(1.1, 0.9);
    expect(started.given[0]).toEqual([0.091]);
  });

  it('that is small has to last in a row', () => {
    const started = start(2);
    for (let i = 0; i < 5; i += 1) {
      started.round(1.1, 0.9);
      started.round(1, 1);
    }
    expect(started.given).toEqual([[], []]);
  });

  it('is each worker’s own', () => {
    const started = start(2);
    for (let i = 0; i < 5; i += 1) {
      started.round(1.1, 0.9);
      started.round(0.9, 1.1);
    }
    expect(started.given).toEqual([[], []]);
  });

  it('is not that of the next worker of the slot', () => {
    const started = start(2);
    started.round(1.1, 0.9);
    const [old] = started.all;
    const next = started.add(0, 'ready');
    old!.enter('exited');
    for (let tick = 0; tick < 4; tick += 1) started.balance.tick();
    started.report(next, 1.1);
    started.report(started.all[1]!, 0.9);
    expect(next.sent('give-away')).toEqual([]);
  });

  it('that does not shrink is acted on ever less', () => {
    const started = start(2);
    for (let i = 0; i < 64; i += 1) started.round(2, 0);
    expect(started.given[0]).toHaveLength(20 + 2);
  });

  it('is acted on anew once there is a worker that may help', () => {
    const started = start(2);
    for (let i = 0; i < 40; i += 1) started.round(2, 0);
    const before = started.given[0]!.length;
    started.balance.workerJoined();
    started.round(2, 0);
    expect(started.given[0]).toHaveLength(before + 1);
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
  it('follow one another by four ticks, which is a second, while all is calm', () => {
    expect(4 * BALANCE_TICK_MS).toBe(1_000);
    const started = start(2);
    expect(started.round(1, 1)).toBe(1);
    expect([started.round(1, 1), started.round(1, 1)]).toEqual([4, 4]);
  });

  it('follow one another by four ticks also where the surplus is small', () => {
    const started = start(2);
    started.round(1.1, 0.9);
    expect([started.round(1.1, 0.9), started.round(1.1, 0.9)]).toEqual([4, 4]);
    expect(started.given[0]).toHaveLength(2);
  });

  it('follow at the next tick where one showed a clear surplus', () => {
    const started = start(2);
    started.round(2, 0);
    expect([started.round(2, 0), started.round(1.5, 0.5), started.round(1, 1)]).toEqual([1, 1, 1]);
    expect(started.round(1, 1)).toBe(4);
  });

  it('are calm where a clear surplus is not acted on any more', () => {
    const started = start(2);
    for (let i = 0; i < 21; i += 1) started.round(2, 0);
    expect(started.round(2, 0)).toBe(4);
  });

  it('do not wait once a worker has become ready', () => {
    const started = start(2);
    started.round(1, 1);
    started.balance.workerJoined();
    expect(started.round(1, 1)).toBe(1);
    expect(started.round(1, 1)).toBe(4);
  });
});

describe('a cluster of one', () => {
  it('costs no message', () => {
    const started = start(1);
    for (let tick = 0; tick < 20; tick += 1) started.balance.tick();
    expect(started.rounds).toEqual([0]);
  });

  it('costs none while its second worker starts, and its rounds begin once that is ready', () => {
    const { add, balance, all, asked } = start(1);
    const second = add(1, 'starting');
    for (let tick = 0; tick < 20; tick += 1) balance.tick();
    expect([all[0]!, second].map(asked)).toEqual([0, 0]);
    second.enter('ready');
    balance.workerJoined();
    balance.tick();
    expect([all[0]!, second].map(asked)).toEqual([1, 1]);
  });

  it('is one that was larger: a round that was under way tells the one left nothing', () => {
    const started = start(2);
    started.round(2);
    started.all[1]!.enter('exited');
    for (let tick = 0; tick < 20; tick += 1) started.balance.tick();
    started.report(started.all[0]!, 2);
    expect(started.rounds).toEqual([1, 1]);
    expect(started.given[0]).toEqual([]);
  });
});
