import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ClusterAddressError } from '../../../src/contract/errors/index.js';
import { FakeCluster } from '../support/fake-cluster.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const start = (workers = 2) => new FakeCluster(workers, { hangTimeoutMs: false });

/** The workers that were told to leave do. */
function letGo(cluster: FakeCluster): void {
  for (const worker of cluster.workers('draining')) worker.exit({ code: 0 });
}

/** The worker of slot 0 asks for another number. */
function askBy(cluster: FakeCluster, workers: number) {
  const worker = cluster.current(0);
  worker.say({ type: 'scale-request', id: 7, workers });
  return worker;
}

describe('scaling up', () => {
  it('forks the workers that are missing and disturbs nobody', () => {
    const cluster = start(2);
    cluster.scale(4);
    expect(cluster.picture).toEqual([
      '0: gen=0 ready',
      '1: gen=0 ready',
      '2: gen=0 starting',
      '3: gen=0 starting',
    ]);
    expect([cluster.forked.length, cluster.reserved]).toEqual([4, [4]]);
    expect(cluster.supervisor.snapshot().desired).toBe(4);
    expect(cluster.events('scaling')).toEqual([{ from: 2, to: 4, reason: 'test' }]);
  });

  it('is over when all of them are ready, not before', async () => {
    const cluster = start(1);
    const told = cluster.scale(3);
    cluster.newest(2).becomeReady();
    await cluster.settled();
    expect(told).toEqual([]);
    cluster.newest(1).becomeReady();
    await cluster.settled();
    expect(told).toMatchObject([{ desired: 3, ready: 3 }]);
  });

  it('is over also where a new worker fails: it may never become ready', async () => {
    const cluster = start(1);
    const told = cluster.scale(2);
    cluster.newest(1).exit();
    await cluster.settled();
    expect(told).toMatchObject([{ desired: 2, ready: 1 }]);
  });

  it('is not over because of a failure that the slot had before it was scaled away', async () => {
    const cluster = start(2);
    cluster.crash(1);
    cluster.newest(1).becomeReady();
    cluster.scale(1);
    letGo(cluster);

    const told = cluster.scale(2);
    await cluster.settled();
    expect(told).toEqual([]);
    cluster.newest(1).becomeReady();
    await cluster.settled();
    expect(told).toMatchObject([{ ready: 2 }]);
  });
});

describe('scaling down', () => {
  it('sends away the workers of the last slots', () => {
    const cluster = start(4);
    cluster.scale(2);
    expect(cluster.picture).toEqual([
      '0: gen=0 ready',
      '1: gen=0 ready',
      '2: gen=0 draining',
      '3: gen=0 draining',
    ]);
    expect(cluster.forked).toHaveLength(4);
    expect(cluster.events('scaling')).toEqual([{ from: 4, to: 2, reason: 'test' }]);
    expect(cluster.events('worker-draining').map(({ cause }) => cause)).toEqual(['scale', 'scale']);
  });

  it('is over when they are gone, not before', async () => {
    const cluster = start(3);
    const [, second, third] = cluster.forked;
    const told = cluster.scale(1);
    second!.exit({ code: 0 });
    await cluster.settled();
    expect(told).toEqual([]);
    third!.exit({ code: 0 });
    await cluster.settled();
    expect(told).toMatchObject([{ desired: 1, ready: 1, workers: [{ slot: 0 }] }]);
  });

  it('is told at once to a worker that asks: it may be one of those that leave', () => {
    expect(askBy(start(3), 1).sent('answer')).toMatchObject([
      { id: 7, result: { desired: 1, ready: 1 } },
    ]);
  });

  it('calls off the restart that was due, and starts at once when the slot is back', () => {
    const cluster = start(2);
    cluster.newest(1).exit();
    cluster.scale(1);
    vi.advanceTimersByTime(1_000);
    expect(cluster.forked).toHaveLength(2);
    cluster.scale(2);
    expect(cluster.forked).toHaveLength(3);
  });
});

describe('scaling down and up again', () => {
  it('starts a new worker at once beside the one that still drains', () => {
    const cluster = start(2);
    cluster.scale(1);
    cluster.scale(2);
    expect(cluster.picture).toEqual(['0: gen=0 ready', '1: gen=0 draining', '1: gen=0 starting']);
  });
});

describe('scaling to the number that there is', () => {
  it('is over at once, and nothing is done or said', async () => {
    const cluster = start(2);
    const told = cluster.scale(2);
    await cluster.settled();
    expect(told).toMatchObject([{ desired: 2, ready: 2 }]);
    expect(cluster.forked).toHaveLength(2);
    expect(cluster.story).toEqual(['worker-ready', 'worker-ready']);
  });

  it('waits with whoever asked before for what is still to come', async () => {
    const cluster = start(1);
    const [first, second] = [cluster.scale(2), cluster.scale(2)];
    await cluster.settled();
    expect([first, second]).toEqual([[], []]);
    cluster.newest(1).becomeReady();
    await cluster.settled();
    expect([first.length, second.length]).toEqual([1, 1]);
  });
});

describe('whoever waits for scaling', () => {
  it('is told of what there is when the last word has been acted on', async () => {
    const cluster = start(1);
    const told = [cluster.scale(2), cluster.scale(1)];
    await cluster.settled();
    expect(told).toEqual([[], []]);
    letGo(cluster);
    await cluster.settled();
    expect(told).toMatchObject([[{ desired: 1 }], [{ desired: 1 }]]);
  });

  it('is told once', () => {
    const cluster = start(1);
    const worker = askBy(cluster, 2);
    expect(worker.sent('answer')).toEqual([]);
    cluster.newest(1).becomeReady();
    cluster.newest(1).exit();
    cluster.supervisor.stop('test');
    expect(worker.sent('answer')).toHaveLength(1);
  });

  it('is told at the end of the cluster of what there is by then', async () => {
    const cluster = start(1);
    const told = cluster.scale(3);
    cluster.supervisor.stop('test');
    const late = cluster.scale(4);
    await cluster.settled();
    expect([told, late]).toMatchObject([[{ desired: 3 }], [{ desired: 3 }]]);
    expect([cluster.forked.length, cluster.reserved]).toEqual([3, [3]]);
  });
});

describe('a worker more that would have nothing to listen on', () => {
  const taken = new ClusterAddressError(
    'http://127.0.0.1:3002',
    Object.assign(new Error('bind EADDRINUSE'), { code: 'EADDRINUSE' }),
  );

  it.each([taken, new TypeError('not an address')])(
    'is refused, and nothing changes: %s',
    async (error) => {
      const cluster = start(2);
      cluster.refuseToListen = error;
      const told = cluster.scale(3);
      await cluster.settled();
      expect(told).toEqual([error]);
      expect(cluster.supervisor.snapshot().desired).toBe(2);
      expect(cluster.forked).toHaveLength(2);
      expect(cluster.events('scaling')).toEqual([]);
    },
  );

  it('is refused also to a worker that asks, with the address and the reason', () => {
    const cluster = start(2);
    cluster.refuseToListen = taken;
    const worker = askBy(cluster, 3);
    expect(worker.sent('answer')).toMatchObject([
      { id: 7, refusal: { address: 'http://127.0.0.1:3002', code: 'EADDRINUSE' } },
    ]);
  });
});
