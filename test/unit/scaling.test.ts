import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { AddressUnavailableError } from '../../src/errors/index.js';
import { Scaling } from '../../src/primary/scaling.js';
import type { Slot } from '../../src/primary/slot.js';
import type { ClusterSnapshot } from '../../src/snapshot/index.js';
import { FakeCluster } from './fake-cluster.js';
import { type FakeWorker, STATS } from './fake-worker.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

function start(workers = 2) {
  const cluster = new FakeCluster(workers);
  const { table } = cluster;
  const forked: number[] = [];
  const dismissed: number[] = [];
  const reserve = vi.fn();
  const refused: Error[] = [];
  const scaling = new Scaling(table, { reserve }, cluster.emit, {
    start: (slot) => {
      forked.push(slot.index);
      slot.current = cluster.fork(slot, slot.release).handle;
    },
    dismiss: (slot) => {
      dismissed.push(slot.index);
      for (const worker of slot.workers) {
        slot.retire(worker);
        worker.enter('draining');
      }
    },
  });
  /** As the supervisor: whenever a worker is ready, has failed or is gone. */
  const settleAfter = (change: () => void) => {
    change();
    scaling.settle();
  };
  return {
    cluster,
    scaling,
    reserve,
    refused,
    forked,
    dismissed,
    /** Asks for `workers`; keeps what is told. `leaving`: one of the workers asks. */
    scale: (to: number, leaving = false): ClusterSnapshot[] => {
      const told: ClusterSnapshot[] = [];
      scaling.scale({
        workers: to,
        reason: 'test',
        leaving,
        done: (snapshot) => void told.push(snapshot),
        refused: (error) => void refused.push(error),
      });
      return told;
    },
    ready: (worker: FakeWorker) => settleAfter(() => cluster.becomeReady(worker)),
    gone: (worker: FakeWorker) => settleAfter(() => void cluster.exit(worker)),
    failed: (worker: FakeWorker) =>
      settleAfter(() => {
        cluster.exit(worker);
        const slot = cluster.table.slotOf(worker.handle);
        const failure = { cause: 'boot', livedMs: 0 } as const;
        slot.recordFailure(failure, performance.now(), cluster.options.restart, false);
      }),
  };
}

const drainingOf = (cluster: FakeCluster) =>
  cluster.forked.filter(({ handle }) => handle.state === 'draining');

describe('scaling up', () => {
  it('forks the workers that are missing and disturbs nobody', () => {
    const { cluster, scale, forked, dismissed } = start(2);
    scale(4);
    expect([forked, dismissed]).toEqual([[2, 3], []]);
    expect(cluster.table.desired).toBe(4);
    expect(cluster.picture).toEqual([
      '0: gen=0 ready',
      '1: gen=0 ready',
      '2: gen=0 starting',
      '3: gen=0 starting',
    ]);
    expect(cluster.events('scaling')).toEqual([{ from: 2, to: 4, reason: 'test' }]);
  });

  it('is over when all of them are ready, not before', () => {
    const { cluster, scale, ready } = start(1);
    const told = scale(3);
    ready(cluster.current(2));
    expect(told).toEqual([]);
    ready(cluster.current(1));
    expect(told).toMatchObject([{ desired: 3, ready: 3 }]);
  });

  it('is over also where a new worker fails: it may never become ready', () => {
    const { cluster, scale, failed } = start(1);
    const told = scale(2);
    failed(cluster.current(1));
    expect(told).toMatchObject([{ desired: 2, ready: 1 }]);
  });

  it('is not over because of a failure that the slot had before it was scaled away', () => {
    const { cluster, scale, failed, ready, gone } = start(2);
    failed(cluster.current(1));
    const slot = cluster.slot(1);
    slot.current = cluster.fork(slot, slot.release).handle;
    ready(cluster.current(1));
    scale(1);
    for (const worker of drainingOf(cluster)) gone(worker);

    const told = scale(2);
    expect(told).toEqual([]);
    ready(cluster.current(1));
    expect(told).toMatchObject([{ ready: 2 }]);
  });
});

describe('scaling down', () => {
  it('sends away the workers of the last slots', () => {
    const { cluster, scale, forked, dismissed } = start(4);
    scale(2);
    expect([forked, dismissed]).toEqual([[], [2, 3]]);
    expect(cluster.picture).toEqual([
      '0: gen=0 ready',
      '1: gen=0 ready',
      '2: gen=0 draining',
      '3: gen=0 draining',
    ]);
    expect(cluster.events('scaling')).toEqual([{ from: 4, to: 2, reason: 'test' }]);
  });

  it('is over when they are gone, not before', () => {
    const { cluster, scale, gone } = start(3);
    const [, second, third] = cluster.forked;
    const told = scale(1);
    gone(second!);
    expect(told).toEqual([]);
    gone(third!);
    expect(told).toMatchObject([{ desired: 1, ready: 1, workers: [{ slot: 0 }] }]);
  });

  it('is told at once to a worker that asks: it may be one of those that leave', () => {
    const { scale } = start(3);
    expect(scale(1, true)).toMatchObject([{ desired: 1, ready: 1 }]);
  });
});

describe('scaling down and up again', () => {
  it('starts a new worker at once beside the one that still drains', () => {
    const { cluster, scale, forked } = start(2);
    scale(1);
    scale(2);
    expect(forked).toEqual([1]);
    expect(cluster.picture).toEqual(['0: gen=0 ready', '1: gen=0 draining', '1: gen=0 starting']);
  });

  it('keeps what was counted in the slot: a total never falls', () => {
    const { cluster, scale, gone, ready } = start(2);
    const old = cluster.current(1);
    old.handle.stats = { ...STATS, requestsTotal: 500 };
    cluster.slot(1).countRestart('crash');
    scale(1);
    gone(old);
    scale(2);
    ready(cluster.current(1));
    expect(cluster.table.snapshot().workers[1]).toMatchObject({
      requestsTotal: 500,
      restartsByCause: { crash: 1 },
    });
  });
});

describe('scaling to the number that there is', () => {
  it('is over at once, and nothing is done or said', () => {
    const { cluster, scale, forked, dismissed } = start(2);
    expect(scale(2)).toMatchObject([{ desired: 2, ready: 2 }]);
    expect([forked, dismissed, cluster.events('scaling')]).toEqual([[], [], []]);
  });

  it('waits with whoever asked before for what is still to come', () => {
    const { cluster, scale, ready } = start(1);
    const [first, second] = [scale(2), scale(2)];
    expect([first, second]).toEqual([[], []]);
    ready(cluster.current(1));
    expect([first.length, second.length]).toEqual([1, 1]);
  });
});

describe('whoever waits for scaling', () => {
  it('is told of what there is when the last word has been acted on', () => {
    const { cluster, scale, gone } = start(1);
    const up = scale(2);
    const down = scale(1);
    for (const worker of drainingOf(cluster)) gone(worker);
    expect([up, down]).toMatchObject([[{ desired: 1 }], [{ desired: 1 }]]);
  });

  it('is told once', () => {
    const { cluster, scaling, scale, ready } = start(1);
    const told = scale(2);
    ready(cluster.current(1));
    scaling.settle();
    scaling.release();
    expect(told).toHaveLength(1);
  });

  it('is told at the end of the cluster of what there is by then', () => {
    const { scaling, scale } = start(1);
    const told = scale(3);
    scaling.release();
    expect(told).toMatchObject([{ desired: 3, ready: 1 }]);
  });
});

describe('a worker more that would have nothing to listen on', () => {
  const taken = new AddressUnavailableError('http://127.0.0.1:3002', {
    code: 'EADDRINUSE',
    message: 'bind EADDRINUSE',
  });

  it('is refused, and nothing changes', () => {
    const { cluster, scale, reserve, refused, forked } = start(2);
    reserve.mockImplementationOnce(() => {
      throw taken;
    });
    const told = scale(3);
    expect(refused).toEqual([taken]);
    expect(told).toEqual([]);
    expect(cluster.table.desired).toBe(2);
    expect(forked).toEqual([]);
    expect(cluster.events('scaling')).toEqual([]);
  });

  it('is no reason to hide another error', () => {
    const { scale, reserve, refused } = start(2);
    reserve.mockImplementationOnce(() => {
      throw new TypeError('not an address');
    });
    expect(() => scale(3)).toThrow('not an address');
    expect(refused).toEqual([]);
  });

  it('is asked for by the number that there are to be', () => {
    const { scale, reserve } = start(2);
    scale(4);
    expect(reserve.mock.calls).toEqual([[4]]);
  });
});

describe('the slot that a worker was dismissed from', () => {
  it('is listed for as long as its worker is there', () => {
    const { cluster, scale, gone } = start(2);
    const slots = () => cluster.table.surplus.map(({ index }: Slot) => index);
    expect(slots()).toEqual([]);
    scale(1);
    expect(slots()).toEqual([1]);
    for (const worker of drainingOf(cluster)) gone(worker);
    expect(slots()).toEqual([]);
  });
});
