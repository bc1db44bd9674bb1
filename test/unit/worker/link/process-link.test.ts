import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  ClusterAddressError,
  ClusterConfigurationError,
  ClusterNoPrimaryError,
} from '../../../../src/contract/errors/errors.js';
import {
  type PrimaryMessage,
  seal,
  type WorkerMessage,
} from '../../../../src/contract/messages.js';
import type { ClusterSnapshot } from '../../../../src/contract/snapshot/types.js';
import { PrimaryChannel } from '../../../../src/worker/link/primary-channel.js';
import { ProcessLink } from '../../../../src/worker/link/process-link.js';

beforeEach(() => vi.useFakeTimers());

const links: ProcessLink[] = [];
afterEach(() => {
  for (const link of links.splice(0)) link.end();
});

const HOUR_MS = 3_600_000;
const RELOADED = { outcome: 'completed', generation: 3, reason: null } as const;
const snapshotOf = (desired: number) => ({ desired, ready: desired }) as ClusterSnapshot;

const tick = () => vi.advanceTimersByTimeAsync(0);

const optionsWith = (warnings = { shown: true, ignore: [] as string[] }) =>
  ({ balancing: 'shared', expose: 'app', warnings }) as never;

/** The link of a worker. Its primary takes messages, and answers when the test does. */
function start(warnings?: { shown: boolean; ignore: string[] }) {
  const messages: WorkerMessage[] = [];
  const said: string[] = [];
  const ipc = Object.assign(new EventEmitter(), {
    connected: true,
    send(message: WorkerMessage, _: unknown, __: unknown, taken: () => void) {
      messages.push(message);
      taken();
    },
  });
  const channel = new PrimaryChannel(ipc as never);
  const received = vi.fn();
  channel.onMessage(received);
  const closed = vi.fn();
  channel.onClosed(closed);
  const link = new ProcessLink({
    options: optionsWith(warnings),
    droppedLogLines: () => 6,
    logWarning: (message) => said.push(message),
    worker: {
      identity: { slot: 1, pid: 42, generation: 3 },
      workers: 6,
      channel,
      leaderRole: {} as never,
    },
  });
  links.push(link);
  link.provideMetrics({ serialize: async () => 'OWN' });
  const receive = (message: PrimaryMessage, handle?: unknown) =>
    ipc.emit('message', seal(message), handle);
  return {
    ipc,
    link,
    said,
    received,
    closed,
    receive,
    sent: <T extends WorkerMessage['type']>(type: T) =>
      messages.filter((each): each is WorkerMessage & { type: T } => each.type === type),
    answer: (id: number, result: unknown) =>
      receive({ type: 'answer', id, result: result as never }),
    disconnect: () => {
      ipc.connected = false;
      ipc.emit('disconnect');
    },
  };
}

/** The link of a process without a primary. */
function alone(setup: ConstructorParameters<typeof ProcessLink>[0] = {}) {
  const link = new ProcessLink(setup);
  links.push(link);
  return link;
}

it('a channel is drained when the kernel has taken all messages, so that metrics do not add up', () => {
  const taken: (() => void)[] = [];
  const send = (_message: unknown, _handle: unknown, _options: unknown, done: () => void) =>
    taken.push(done);
  const channel = new PrimaryChannel(
    Object.assign(new EventEmitter(), { connected: true, send }) as never,
  );
  expect(channel.drained).toBe(true);
  for (let n = 0; n < 2; n += 1) void channel.send({ type: 'leaving' });
  taken[0]!();
  expect(channel.drained).toBe(false);
  taken[1]!();
  expect(channel.drained).toBe(true);
});

describe('a request to the primary', () => {
  it('is sent once for all who make it, and resolves for all, however long it takes', async () => {
    const { link, sent, answer } = start();
    const both = Promise.all([link.reload(), link.reload()]);
    await vi.advanceTimersByTimeAsync(HOUR_MS);
    const [asked, ...more] = sent('reload-request');
    expect(more).toEqual([]);
    answer(asked!.id, RELOADED);
    answer(asked!.id, { ...RELOADED, generation: 4 });
    expect(await both).toEqual([RELOADED, RELOADED]);
    void link.reload();
    await tick();
    expect(sent('reload-request')).toHaveLength(2);
  });

  it('is its own if it asks for something else', async () => {
    const { link, sent, answer } = start();
    const [three, five] = [link.scale(3), link.scale(5)];
    const [first, second] = [link.restart(0), link.restart(1)];
    await tick();
    const [scale3, scale5] = sent('scale-request');
    const [restart0, restart1] = sent('restart-request');
    expect([scale3!.workers, scale5!.workers]).toEqual([3, 5]);
    expect([restart0!.slot, restart1!.slot]).toEqual([0, 1]);
    for (const asked of [scale5!, scale3!]) answer(asked.id, snapshotOf(asked.workers));
    for (const asked of [restart1!, restart0!]) answer(asked.id, { slot: asked.slot });
    expect([(await three).desired, (await five).desired]).toEqual([3, 5]);
    expect([(await first).slot, (await second).slot]).toEqual([0, 1]);
  });

  it('rejects if the primary refuses it, and no other request with it', async () => {
    const { link, sent, answer, receive } = start();
    const [refused, scaled] = [link.scale(9), link.scale(2)];
    await tick();
    const [first, second] = sent('scale-request');
    const cause = { name: 'Error', message: 'bind EADDRINUSE', code: 'EADDRINUSE' };
    const refusal = { ...cause, address: 'http://127.0.0.1:3002' };
    receive({ type: 'answer', id: 99, refusal });
    receive({ type: 'answer', id: first!.id, refusal });
    answer(second!.id, snapshotOf(2));
    await expect(refused).rejects.toThrow(ClusterAddressError);
    await expect(refused).rejects.toMatchObject({
      message: expect.stringMatching(/^cannot listen on http:\/\/127.0.0.1:3002: .*EADDRINUSE/),
      cause,
    });
    expect(await scaled).toEqual(snapshotOf(2));
  });

  it('rejects when the primary is gone, also if it is made later', async () => {
    const { link, disconnect, closed } = start();
    const calls = () => [link.reload(), link.scale(2), link.scale(3), link.restart(0)];
    const all = Promise.allSettled(calls());
    disconnect();
    for (const { status } of await all) expect(status).toBe('rejected');
    for (const call of calls()) await expect(call).rejects.toThrow(ClusterNoPrimaryError);
    expect(closed).toHaveBeenCalledOnce();
  });

  it.each([-1, 1.5, NaN, 257, '2'])('is not sent to scale to %o', async (workers) => {
    const { link, sent } = start();
    await expect(link.scale(workers as number)).rejects.toThrow(ClusterConfigurationError);
    expect(sent('scale-request')).toEqual([]);
  });

  it('for a thread resolves with its path, or rejects with the reason', async () => {
    const { link, sent, answer, receive } = start();
    const path = link.thread('@nestjs-cluster/shared')!;
    const [found, refused, late] = [path(), link.thread('b')!(), link.thread('c')!()];
    await tick();
    const [first, second] = sent('thread-request');
    answer(first!.id, '/run/1.sock');
    receive({
      type: 'answer',
      id: second!.id,
      refusal: { name: 'Error', message: 'no directory' },
    });
    expect(await found).toBe('/run/1.sock');
    await expect(refused).rejects.toThrow('no directory');
    const failed = expect(late).rejects.toThrow('the primary does not answer');
    await vi.advanceTimersByTimeAsync(5_000);
    await failed;
    expect(alone().thread('a')).toBeUndefined();
  });
});

describe('the snapshot of a worker', () => {
  it('is fresh, and asks with the current measurements', async () => {
    const { link, sent, answer } = start();
    Object.assign(link.tracker, { requestsTotal: 5 });
    const asked = link.snapshot();
    await tick();
    const [request] = sent('snapshot-request');
    expect(request!.stats).toMatchObject({ requestsTotal: 5, logLinesDroppedTotal: 6 });
    expect(link.isSnapshotEarly).toBe(true);
    answer(request!.id, snapshotOf(2));
    expect(await asked).toEqual({ snapshot: snapshotOf(2), ageMs: 0 });
    expect(link.isSnapshotEarly).toBe(false);
  });

  it('is the last known one after 500 ms, also if the channel takes nothing', async () => {
    const { ipc, link, sent, answer } = start();
    const first = link.snapshot();
    await tick();
    answer(sent('snapshot-request')[0]!.id, snapshotOf(7));
    await first;
    ipc.send = () => {};
    vi.advanceTimersByTime(1_000);
    let settled = false;
    const asked = link.snapshot().finally(() => (settled = true));
    await vi.advanceTimersByTimeAsync(499);
    expect(settled).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(await asked).toEqual({ snapshot: snapshotOf(7), ageMs: 1_500 });
  });

  it('is of this process alone, and as old as it, if the primary never answered', async () => {
    const { link, disconnect } = start();
    disconnect();
    const { snapshot, ageMs } = await link.snapshot();
    expect(snapshot).toMatchObject({ balancing: 'shared', workers: [{ slot: 1, pid: 42 }] });
    expect(ageMs).toBeGreaterThan(0);
  });
});

describe('the metrics that a worker collects', () => {
  const WORKERS = [
    { slot: 0, generation: 0, ageMs: 300, body: 'A' },
    { slot: 1, generation: 0, ageMs: 0, body: 'OWN' },
  ];
  const ALL = { snapshot: snapshotOf(2), workers: WORKERS, retired: ['R'] };

  it('are those of all workers, and its own come with the request', async () => {
    const { link, sent, answer } = start();
    const both = Promise.all([link.collectMetrics(), link.collectMetrics()]);
    await tick();
    const [asked, ...more] = sent('collect-request');
    expect(more).toEqual([]);
    expect(asked).toMatchObject({ body: 'OWN', ageMs: 0, stats: { requestsTotal: 0 } });
    answer(asked!.id, ALL);
    expect(await both).toEqual([ALL, ALL]);
    expect(link.isSnapshotEarly).toBe(false);
  });

  it('are none after 900 ms, beside the last known snapshot, and whole with the next answer', async () => {
    const { link, sent, answer } = start();
    const before = link.snapshot();
    await tick();
    answer(sent('snapshot-request')[0]!.id, snapshotOf(7));
    await before;
    const none = { snapshot: snapshotOf(7), workers: [], retired: [], snapshotAgeMs: 900 };
    const collected = link.collectMetrics();
    await vi.advanceTimersByTimeAsync(900);
    expect(await collected).toEqual(none);
    const next = link.collectMetrics();
    await tick();
    const [late, asked] = sent('collect-request');
    answer(late!.id, { ...ALL, workers: [] });
    answer(asked!.id, ALL);
    expect(await next).toEqual(ALL);
  });
});

it('the own metrics of a process are those of the last call, with their age, if they cannot be read', async () => {
  const link = alone();
  expect(await link.serializeMetrics()).toEqual({ body: '', ageMs: 0 });
  const source = { serialize: async () => 'before' };
  link.provideMetrics(source);
  expect(await link.serializeMetrics()).toEqual({ body: 'before', ageMs: 0 });
  expect(link.metricsAt).toBe(performance.now());
  source.serialize = () => Promise.reject(new Error('gone'));
  vi.advanceTimersByTime(400);
  expect(await link.serializeMetrics()).toEqual({ body: 'before', ageMs: 400 });
});

describe('a process without a primary', () => {
  it('is a cluster of one', async () => {
    const link = alone({ options: optionsWith() });
    link.provideMetrics({ serialize: async () => 'OWN' });
    link.provideHealth(async () => ({ healthy: false, detail: null }), 'all');
    expect(link.provideThreads({} as never)).toBe(false); // no primary asks to verify them
    link.attach(undefined);
    const { snapshot, ...collected } = await link.collectMetrics();
    expect(collected).toEqual({
      workers: [{ slot: 0, generation: 0, ageMs: 0, body: 'OWN' }],
      retired: [],
    });
    for (const each of [snapshot, (await link.snapshot()).snapshot])
      expect(each).toMatchObject({
        balancing: 'none',
        desired: 1,
        ready: 1,
        minReady: 1,
        primary: null,
        leader: { slot: 0, pid: process.pid, generation: 0 },
        workers: [{ slot: 0, state: 'ready', restarts: 0, lastExit: null, responsive: true }],
      });
  });

  it('rejects what only a primary does, and says what to do', async () => {
    const link = alone();
    const calls = {
      'reload()': () => link.reload(),
      'scale()': () => link.scale(2),
      'restart()': () => link.restart(0),
    };
    for (const [name, call] of Object.entries(calls)) {
      await expect(call()).rejects.toThrow(ClusterNoPrimaryError);
      await expect(call()).rejects.toThrow(name);
      await expect(call()).rejects.toThrow(/bootstrap\(\).*worker/);
    }
  });

  it('serves and leads until the last of its apps is closed', async () => {
    const link = alone();
    link.attach(undefined);
    link.attach(undefined);
    link.detach();
    expect([link.accepting, link.leaderRole.leads, link.leaderRole.owns(0)]).toEqual(
      Array(3).fill(true),
    );
    link.detach();
    expect([link.accepting, link.leaderRole.leads, link.leaderRole.owns(0)]).toEqual(
      Array(3).fill(false),
    );
    expect((await link.snapshot()).snapshot).toMatchObject({ ready: 0, leader: null });
  });
});

describe('every link', () => {
  it('measures the process and its traffic', () => {
    const { link } = start();
    const traffic = { requestsInFlight: 2, requestsTotal: 5, rebalancedConnectionsTotal: 3 };
    Object.assign(link.tracker, { ...traffic, droppedConnections: 4 });
    link.threads = { utilization: () => 0.5 } as never;
    const stats = { ...traffic, openConnections: 0, droppedConnectionsTotal: 4 };
    expect(link.measure()).toMatchObject({
      ...stats,
      logLinesDroppedTotal: 6,
      threadUtilization: 0.5,
      cpuSecondsTotal: expect.any(Number),
    });
    link.tracker.requestsTotal = 6;
    expect(link.stats()).toMatchObject({ ...stats, threadUtilization: 0.5, requestsTotal: 6 });
  });

  it('knows what the drain must wait for', () => {
    for (const link of [start().link, alone()]) {
      expect(link.hasTasksBefore(Infinity)).toBe(false);
      const asked = vi.fn((before: number) => before > 5);
      link.onDrainTasks(() => true);
      link.onDrainTasks(asked);
      expect(link.hasTasksBefore(5)).toBe(true);
      expect(asked).toHaveBeenCalledWith(5);
    }
  });

  it('knows whether bootstrap() started it, its workers, and whether the app shows details', () => {
    const hidden = { options: { expose: 'admin' } as never };
    const all = [start().link, alone(), alone(hidden)];
    expect(all.map(({ bootstrapped }) => bootstrapped)).toEqual([true, false, true]);
    expect(all.map(({ workers }) => workers)).toEqual([6, 1, 1]);
    expect(all.map(({ showsDetails }) => showsDetails)).toEqual([true, true, false]);
  });

  it("counts as healthy unless the app's check says otherwise", async () => {
    const { link } = start();
    expect(await link.checkHealth()).toEqual({ healthy: true, detail: null });
    const verdict = { healthy: false, detail: 'database: refused' };
    link.provideHealth(async () => verdict, 'all');
    expect(await link.checkHealth()).toEqual(verdict);
    expect(link.minReady).toBe('all');
  });

  it('has a way to silence a warning that has a name', () => {
    const ignore = ['cpu-bound-threads'];
    const { link, said } = start();
    link.warn('odd');
    link.warn('odder', 'cpu-bound-threads');
    expect(said).toEqual([
      'odd',
      "odder; warnings: { ignore: ['cpu-bound-threads'] } in bootstrap() silences this",
    ]);
    for (const warnings of [
      { shown: true, ignore },
      { shown: false, ignore: [] },
    ]) {
      const silenced = start(warnings);
      silenced.link.warn('oddest', 'cpu-bound-threads');
      silenced.link.warn('odd');
      expect(silenced.said).toEqual(['odd']);
    }
  });
});

describe('the events of the cluster', () => {
  const READY = { worker: { slot: 0, pid: 7, generation: 0 }, bootMs: 5 };
  const event = (name: string, missed = 0) =>
    ({ type: 'event', name, event: READY, missed }) as const;

  it('are those that have listeners', () => {
    const { link, sent, said } = start();
    const listener = vi.fn();
    link.onEvent('worker-ready', listener);
    link.onEvent('worker-exit', listener);
    link.offEvent('worker-exit', listener);
    expect(sent('subscribe').map(({ events }) => events)).toEqual([
      ['worker-ready'],
      ['worker-ready', 'worker-exit'],
      ['worker-ready'],
    ]);
    link.receive(event('worker-ready'));
    link.receive(event('worker-exit'));
    expect(listener.mock.calls).toEqual([[READY]]);
    expect(said).toEqual([]);
  });

  it('give a warning if some were missed, or if a listener throws', () => {
    const { link, said } = start();
    link.onEvent('worker-ready', () => {
      throw new Error('full');
    });
    link.receive(event('worker-ready', 3));
    expect(said).toEqual([
      'cluster events were dropped: the worker did not read them in time',
      "a listener for 'worker-ready' threw: full",
    ]);
  });
});

describe('a message to a worker', () => {
  const ADOPT = seal({ type: 'adopt', slot: 1 });
  const socket = { close: vi.fn() };

  it.each<[what: string, message: object, appListens: boolean, closed: number, received: object[]]>(
    [
      ['is of a type that has one', ADOPT, false, 0, [[ADOPT, socket]]],
      [
        'is of a type that has none',
        seal({ type: 'collect' }),
        false,
        1,
        [[seal({ type: 'collect' }), socket]],
      ],
      ['has another version', { ...ADOPT, v: 2 }, false, 1, []],
      ["is the app's, which does not listen", { question: 1 }, false, 1, []],
      ["is the app's, which listens", { question: 1 }, true, 0, []],
    ],
  )('with a socket, which is closed if no one takes it: the message %s', (...row) => {
    const [, message, appListens, closed, all] = row;
    const { ipc, received } = start();
    socket.close.mockClear();
    if (appListens) ipc.on('message', () => {});
    ipc.emit('message', message, socket);
    expect(socket.close).toHaveBeenCalledTimes(closed);
    expect(received.mock.calls).toEqual(all);
  });
});
