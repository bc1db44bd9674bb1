import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  ClusterAddressError,
  ClusterConfigurationError,
  ClusterNoPrimaryError,
} from '../../../../src/contract/errors/index.js';
import type { WorkerMessage } from '../../../../src/contract/ipc/index.js';
import type { ResolvedClusterOptions } from '../../../../src/contract/options/index.js';
import { SCRAPE_TIMEOUT_MS } from '../../../../src/contract/snapshot/index.js';
import type { PrimaryChannel } from '../../../../src/worker/link/primary-channel.js';
import { SoloLink } from '../../../../src/worker/link/solo-link.js';
import { WorkerLink } from '../../../../src/worker/link/worker-link.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const RESULT = { outcome: 'completed', generation: 3, reason: null } as const;

const newLink = (channel = {} as PrimaryChannel, workers = 1) =>
  new WorkerLink({ slot: 1, pid: 42, generation: 0 }, channel, workers, 'shared');

function start() {
  const sent: WorkerMessage[] = [];
  const channel = {
    send: async (message: WorkerMessage) => void sent.push(message),
  } as unknown as PrimaryChannel;
  const link = newLink(channel);
  const snapshotOf = (desired: number) => ({ ...link.ownSnapshot(), desired });
  return {
    link,
    snapshotOf,
    sent: <T extends WorkerMessage['type']>(type: T) =>
      sent.filter((message): message is WorkerMessage & { type: T } => message.type === type),
  };
}

describe('the metrics that a worker collects', () => {
  const tick = () => vi.advanceTimersByTimeAsync(0);

  function metrics() {
    const all = start();
    all.link.provideMetrics({ serialize: async () => 'OWN' });
    return all;
  }

  const WORKERS = [
    { slot: 0, generation: 0, ageMs: 300, body: 'A' },
    { slot: 1, generation: 0, ageMs: 0, body: 'OWN' },
  ];

  it('are asked for with its own, once for all who ask, are those of all, and renew what is known', async () => {
    const { link, sent, snapshotOf } = metrics();
    const all = { snapshot: { ...snapshotOf(2), ready: 2 }, workers: WORKERS, retired: ['R'] };
    const both = Promise.all([link.collectMetrics(), link.collectMetrics()]);
    await tick();
    const [asked, ...more] = sent('collect-request');
    expect(more).toEqual([]);
    expect(asked).toMatchObject({ body: 'OWN', stats: { requestsTotal: 0 } });
    expect(link.knowsLittle).toBe(true);
    link.answer({ type: 'collected', id: asked!.id, ...all });
    expect(await both).toEqual([all, all]);
    expect(link.knowsLittle).toBe(false);
  });

  it('are none where the primary does not answer, beside what was known last of the cluster', async () => {
    const { link, sent, snapshotOf } = metrics();
    const before = link.snapshot();
    await tick();
    const snapshot = snapshotOf(7);
    link.answer({ type: 'snapshot', id: sent('snapshot-request')[0]!.id, snapshot });
    await before;
    vi.advanceTimersByTime(1_000);

    let settled = false;
    const collected = link.collectMetrics().finally(() => (settled = true));
    await vi.advanceTimersByTimeAsync(SCRAPE_TIMEOUT_MS - 1);
    expect(settled).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(await collected).toEqual({
      snapshot,
      workers: [],
      retired: [],
      snapshotAgeMs: 1_000 + SCRAPE_TIMEOUT_MS,
    });
  });

  it('are none, and say of this process alone, where the primary never answered', async () => {
    const { link } = metrics();
    const collected = link.collectMetrics();
    await vi.advanceTimersByTimeAsync(SCRAPE_TIMEOUT_MS);
    expect(await collected).toMatchObject({
      snapshot: { desired: 1, workers: [{ slot: 1, pid: 42 }] },
    });
    // As old as the process: it has heard nothing since.
    expect((await collected).snapshotAgeMs).toBeGreaterThan(0);
  });

  it('are none at once where the primary is gone', async () => {
    const { link } = metrics();
    const collected = link.collectMetrics();
    await tick();
    link.abandon();
    expect(await collected).toMatchObject({ workers: [], snapshotAgeMs: expect.any(Number) });
  });

  it('are whole again with the next answer; one that is late finds nobody', async () => {
    const { link, sent, snapshotOf } = metrics();
    const first = link.collectMetrics();
    await vi.advanceTimersByTimeAsync(SCRAPE_TIMEOUT_MS);
    expect((await first).snapshotAgeMs).toBeGreaterThan(0);
    const second = link.collectMetrics();
    await tick();
    const [late, asked] = sent('collect-request');
    const whole = { snapshot: snapshotOf(2), workers: WORKERS, retired: [] };
    link.answer({ type: 'collected', id: late!.id, ...whole, workers: [] });
    link.answer({ type: 'collected', id: asked!.id, ...whole });
    expect(await second).toEqual(whole);
  });

  it('are its own where there is no primary', async () => {
    const solo = new SoloLink();
    solo.provideMetrics({ serialize: async () => 'OWN' });
    expect(await solo.collectMetrics()).toEqual({
      workers: [{ slot: 0, generation: 0, ageMs: 0, body: 'OWN' }],
      retired: [],
      snapshot: expect.objectContaining({ primary: null, desired: 1 }),
    });
    solo.detach();
  });
});

describe('reload() in a worker', () => {
  it('asks the primary once and resolves with the result, however long that takes', async () => {
    const { link, sent } = start();
    const both = Promise.all([link.reload(), link.reload()]);
    await vi.advanceTimersByTimeAsync(3_600_000);
    expect(sent('reload-request')).toHaveLength(1);
    link.answer({ type: 'reloaded', id: sent('reload-request')[0]!.id, result: RESULT });
    expect(await both).toEqual([RESULT, RESULT]);
  });

  it('rejects when the primary is gone', async () => {
    const { link } = start();
    const reload = link.reload();
    link.abandon();
    await expect(reload).rejects.toThrow(ClusterNoPrimaryError);
  });
});

describe('restart() in a worker', () => {
  it('asks the primary for each slot by itself, and resolves with the result', async () => {
    const { link, sent } = start();
    const [first, second] = [link.restart(0), link.restart(1)];
    expect(sent('restart-request')).toMatchObject([{ slot: 0 }, { slot: 1 }]);
    await vi.advanceTimersByTimeAsync(3_600_000);
    const [, asked] = sent('restart-request');
    const result = { outcome: 'completed', slot: 1, reason: null } as const;
    link.answer({ type: 'restarted', id: asked!.id, result });
    expect(await second).toEqual(result);
    link.abandon();
    await expect(first).rejects.toThrow(ClusterNoPrimaryError);
  });

  it.each([-1, 0.5, 256, Number.NaN])('refuses %d, which is no slot', async (slot) => {
    await expect(start().link.restart(slot)).rejects.toThrow('a whole number from 0 to 255');
  });
});

describe('scale() in a worker', () => {
  it('asks the primary each time, since the numbers may differ, and resolves however long that takes', async () => {
    const { link, sent, snapshotOf } = start();
    const [three, five] = [link.scale(3), link.scale(5)];
    await vi.advanceTimersByTimeAsync(3_600_000);
    const [first, second] = sent('scale-request');
    expect([first!.workers, second!.workers]).toEqual([3, 5]);
    link.answer({ type: 'scaled', id: second!.id, snapshot: snapshotOf(5) });
    link.answer({ type: 'scaled', id: first!.id, snapshot: snapshotOf(3) });
    expect([(await three).desired, (await five).desired]).toEqual([3, 5]);
  });

  it.each([0, -1, 1.5, NaN, 257, '2', undefined])('rejects %o and asks nobody', async (workers) => {
    const { link, sent } = start();
    await expect(link.scale(workers as number)).rejects.toThrow(ClusterConfigurationError);
    expect(sent('scale-request')).toEqual([]);
  });

  it('rejects where a further worker would have nothing to listen on, and no other request with it', async () => {
    const { link, sent, snapshotOf } = start();
    const [refused, scaled] = [link.scale(9), link.scale(2)];
    const [first, second] = sent('scale-request');
    link.answer({
      type: 'scale-refused',
      id: first!.id,
      address: 'http://127.0.0.1:3002',
      cause: { name: 'Error', message: 'bind EADDRINUSE', code: 'EADDRINUSE' },
    });
    link.answer({ type: 'scaled', id: second!.id, snapshot: snapshotOf(2) });
    await expect(refused).rejects.toThrow(ClusterAddressError);
    await expect(refused).rejects.toMatchObject({
      address: 'http://127.0.0.1:3002',
      code: 'CLUSTER_ADDRESS_UNAVAILABLE',
      message: expect.stringMatching(/^cannot listen on http:\/\/127.0.0.1:3002: .*EADDRINUSE/),
      cause: { code: 'EADDRINUSE' },
    });
    expect(await scaled).toMatchObject({ desired: 2 });
  });

  it('is not refused by an answer to nobody', () => {
    const { link } = start();
    const cause = { name: 'Error', message: 'x' };
    expect(() =>
      link.answer({ type: 'scale-refused', id: 99, address: 'http://127.0.0.1:1', cause }),
    ).not.toThrow();
  });

  it('rejects when the primary is gone', async () => {
    const { link } = start();
    const all = Promise.allSettled([link.scale(2), link.scale(3)]);
    link.abandon();
    for (const { status } of await all) expect(status).toBe('rejected');
  });
});

describe('the health of a worker', () => {
  it('is good where nobody says otherwise', async () => {
    expect(await start().link.checkHealth()).toEqual({ healthy: true, detail: null });
  });

  it('is what the app says', async () => {
    const { link } = start();
    const verdict = { healthy: false, detail: 'database: refused' };
    link.provideHealth(async () => verdict, 'all');
    expect(await link.checkHealth()).toEqual(verdict);
    expect(link.minReady).toBe('all');
  });
});

describe('a process without a primary', () => {
  it.each([
    ['reload()', (link: SoloLink) => link.reload()],
    ['scale()', (link: SoloLink) => link.scale()],
    ['restart()', (link: SoloLink) => link.restart()],
  ])('rejects %s and says what to do', async (call, ask) => {
    const link = new SoloLink();
    const failed = ask(link);
    await expect(failed).rejects.toThrow(ClusterNoPrimaryError);
    await expect(failed).rejects.toThrow(call);
    await expect(failed).rejects.toThrow(/bootstrap\(\).*workers/);
    link.detach();
  });
});

it('tasks beside requests are there for the drain of this process to wait for', () => {
  const solo = new SoloLink();
  for (const link of [newLink(), solo]) {
    expect(link.hasTasksFrom(Infinity)).toBe(false);
    link.provideTasks((before) => before > 5);
    expect([5, 6].map((before) => link.hasTasksFrom(before))).toEqual([false, true]);
  }
  solo.detach();
});

it('bootstrap() has started every worker, and a process without a primary only where that is said', () => {
  const solos = [new SoloLink(), new SoloLink(true)];
  const links = [newLink(undefined, 6), ...solos];
  expect(links.map(({ bootstrapped }) => bootstrapped)).toEqual([true, false, true]);
  expect(links.map(({ workers }) => workers)).toEqual([6, 1, 1]);
  for (const solo of solos) solo.detach();
});

it('a process without a primary serves and leads until the last of its apps is closed', () => {
  const solo = new SoloLink();
  solo.attach(undefined);
  solo.attach(undefined);
  solo.detach();
  expect([solo.accepting, solo.leaderRole.leads]).toEqual([true, true]);
  solo.detach();
  expect([solo.accepting, solo.leaderRole.leads]).toEqual([false, false]);
});

describe('the events of the cluster', () => {
  const READY = { worker: { slot: 0, pid: 7, generation: 0 }, bootMs: 5 };

  it('are asked for once for all listeners that are added together, and again when they change', async () => {
    const { link, sent } = start();
    const listener = vi.fn();
    link.onEvent('worker-ready', listener);
    link.onEvent('worker-exit', listener);
    await vi.advanceTimersByTimeAsync(0);
    link.offEvent('worker-exit', listener);
    await vi.advanceTimersByTimeAsync(0);

    expect(sent('subscribe').map(({ events }) => events)).toEqual([
      ['worker-ready', 'worker-exit'],
      ['worker-ready'],
    ]);
    link.hear({ type: 'event', name: 'worker-ready', event: READY, missed: 0 });
    link.hear({ type: 'event', name: 'an-event-of-tomorrow', event: {}, missed: 0 });
    expect(listener.mock.calls).toEqual([[READY]]);
    expect(sent('warning')).toEqual([]);
  });

  it('that were missed are worth a line, and so is what a listener throws', () => {
    const { link, sent } = start();
    link.onEvent('worker-ready', () => {
      throw new Error('full');
    });
    link.hear({ type: 'event', name: 'worker-ready', event: READY, missed: 3 });
    expect(sent('warning').map(({ message }) => message)).toEqual([
      'missed events of the cluster: it did not read them in time',
      "a listener of 'worker-ready' threw: full",
    ]);
  });
});

describe('a warning with a name', () => {
  const options = (ignore: readonly string[]) =>
    ({ warnings: { shown: true, ignore } }) as ResolvedClusterOptions;

  it('says how to silence it, and is silenced so', () => {
    const { link, sent } = start();
    link.warn('odd');
    link.warn('odder', 'cpu-bound-threads');
    link.configure(options(['cpu-bound-threads']));
    link.warn('oddest', 'cpu-bound-threads');
    link.warn('once more');
    expect(sent('warning').map(({ message }) => message)).toEqual([
      'odd',
      "odder; warnings: { ignore: ['cpu-bound-threads'] } of bootstrap() silences this",
      'once more',
    ]);
  });

  it('is silenced the same in one process', () => {
    const said: string[] = [];
    const solo = new SoloLink(true, undefined, (message) => said.push(message));
    solo.configure(options(['cpu-bound-threads']));
    solo.warn('oddest', 'cpu-bound-threads');
    solo.configure({ warnings: { shown: false, ignore: [] } } as never);
    solo.warn('odder', 'cpu-bound-threads');
    solo.warn('odd');
    expect(said).toEqual(['odd']);
    solo.end();
  });
});
