import { once } from 'node:events';
import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { drain, type DrainedApp, sendAway } from '../../../../src/worker/drain/drain.js';
import { Microservices } from '../../../../src/worker/microservices/microservices.js';
import { busiest } from '../../../support/busiest.js';
import { FakeServer } from '../../support/fake-traffic.js';

const SHUTDOWN = { lameDuckMs: 100, drainTimeoutMs: 10_000, killTimeoutMs: 500 };
const LONGEST_MS = SHUTDOWN.lameDuckMs + SHUTDOWN.drainTimeoutMs;
/** How often the drain looks. */
const SWEEP_MS = 50;

// Fake timers do not replace node:timers/promises, by which it waits. vi.mock() would come too late:
// the unit tests share their modules.
beforeEach(() => {
  vi.useFakeTimers();
  vi.spyOn(timers, 'setTimeout').mockImplementation(
    (ms, value, { signal } = {}) =>
      new Promise((resolve) => {
        setTimeout(() => resolve(value!), ms);
        signal?.addEventListener('abort', () => resolve(value!));
      }),
  );
  syncBuiltinESMExports();
});
afterEach(async () => {
  await Promise.all(reports.splice(0)); // each drain ends
  vi.useRealTimers();
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

const reports: Promise<unknown>[] = [];

function start({
  queueEmpty = Promise.resolve(),
  beforeClose = async () => {},
  ...more
}: Partial<DrainedApp> & {
  queueEmpty?: Promise<void>;
  beforeClose?: () => Promise<void>;
} = {}) {
  const server = new FakeServer();
  const { tracker } = server;
  /** When tasks were begun that have not ended; monotonic ms. */
  const tasks = new Set<number>();
  const signal = undefined as string | undefined;
  const state = { tasks, stopped: false, closed: false, queueEmpty, signal };
  const forced = new AbortController();
  const report = drain(
    {
      close: async (signal) => {
        state.closed = true;
        state.signal = signal;
      },
      link: {
        tracker,
        hasTasksBefore: (before) => [...tasks].some((begun) => begun < before),
        clients: [],
      },
      sockets: {
        leave: async (atOnce) => {
          state.stopped = true;
          await Promise.race([state.queueEmpty, once(atOnce, 'abort')]);
        },
      },
      microservices: new Microservices(),
      app: {} as never,
      lameDuck: new AbortController(),
      forced,
      signal: undefined,
      ...more,
    },
    SHUTDOWN,
    beforeClose,
  );
  reports.push(report);
  return { server, state, report, force: () => forced.abort() };
}

describe('a drain', () => {
  it('closes the app once the lame duck time is over, where nothing is going on', async () => {
    const { state, report } = start();
    await vi.advanceTimersByTimeAsync(SHUTDOWN.lameDuckMs - 1);
    expect(state).toMatchObject({ stopped: false, closed: false });
    await vi.advanceTimersByTimeAsync(1);
    expect(state).toMatchObject({ stopped: true, closed: true });
    expect(await report).toMatchObject({ abortedRequests: 0, hookError: null });
  });

  it('closes the app only after what must happen before', async () => {
    let ready = (): void => {};
    const { state } = start({ beforeClose: () => new Promise((resolve) => (ready = resolve)) });
    await vi.advanceTimersByTimeAsync(LONGEST_MS);
    expect(state.closed).toBe(false);
    ready();
    await vi.advanceTimersByTimeAsync(0);
    expect(state.closed).toBe(true);
  });

  it.each<[problem: string, close: () => Promise<void>]>([
    ['a shutdown hook failed: no pool', () => Promise.reject(new Error('no pool'))],
    ['a shutdown hook failed: 42', () => Promise.reject(42 as never)],
    ['app.close() did not finish within 10500 ms', () => new Promise(() => {})],
  ])('reports %j', async (hookError, close) => {
    const { report } = start({ close });
    await vi.advanceTimersByTimeAsync(2 * LONGEST_MS);
    expect(await report).toMatchObject({ hookError });
  });

  it('asks the client of a request in flight to close its connection', async () => {
    const { server } = start();
    const exchange = server.connect().send();
    await vi.advanceTimersByTimeAsync(SHUTDOWN.lameDuckMs);
    expect(exchange.asksToClose).toBe(true);
    exchange.finish();
    await vi.advanceTimersByTimeAsync(LONGEST_MS);
  });

  it.each<[what: string, begin: () => ReturnType<typeof start>]>([
    ['something is left to accept', () => start({ queueEmpty: new Promise(() => {}) })],
    [
      'a task has not ended',
      () => {
        const started = start();
        started.state.tasks.add(0);
        return started;
      },
    ],
  ])('waits no longer than it may where %s', async (_, begin) => {
    const { state } = begin();
    await vi.advanceTimersByTimeAsync(LONGEST_MS - SWEEP_MS);
    expect(state).toMatchObject({ stopped: true, closed: false });
    await vi.advanceTimersByTimeAsync(2 * SWEEP_MS);
    expect(state.closed).toBe(true);
  });

  it('counts a client that it accepts last and cuts, although it has not read the request yet', async () => {
    const { server, report, force } = start({
      sockets: {
        leave: async (atOnce) => {
          await once(atOnce, 'abort');
          const client = server.connect();
          setImmediate(() => void client.send());
        },
      },
    });
    await vi.advanceTimersByTimeAsync(SHUTDOWN.lameDuckMs);
    force();
    await vi.advanceTimersByTimeAsync(SWEEP_MS);
    expect(await report).toMatchObject({ destroyedConnections: 1, abortedRequests: 1 });
  });

  it('gives clients that it accepts last their time also where it was held up', async () => {
    let empty = (): void => {};
    const { server } = start({ queueEmpty: new Promise((resolve) => (empty = resolve)) });
    await vi.advanceTimersByTimeAsync(SHUTDOWN.lameDuckMs);
    const client = server.connect();
    const now = performance.now.bind(performance);
    vi.spyOn(performance, 'now').mockImplementation(() => now() + 2_000);
    empty();
    await vi.advanceTimersByTimeAsync(200);
    expect(client.closed).toBe(false);
    await vi.advanceTimersByTimeAsync(200);
    expect(client.closed).toBe(true);
  });

  it('gives a client that has just connected a second to ask', async () => {
    const { server } = start();
    const old = server.connect();
    await vi.advanceTimersByTimeAsync(100);
    const late = server.connect();
    await vi.advanceTimersByTimeAsync(900);
    expect([old.closed, late.closed]).toEqual([false, false]);
    await vi.advanceTimersByTimeAsync(200);
    expect([old.closed, late.closed]).toEqual([true, true]);
  });

  it('ends WebSockets at an even rate, and a late one too', async () => {
    const { server } = start();
    const endedAt: number[] = [];
    const open = () => {
      const client = server.connect();
      client.connection.webSocket = true;
      const write = () => {
        endedAt.push(performance.now());
        client.close();
      };
      Object.assign(client.socket, { bytesRead: 100, bytesWritten: 100, writable: true, write });
    };
    for (let i = 0; i < 400; i += 1) open();
    await vi.advanceTimersByTimeAsync(SHUTDOWN.lameDuckMs + 500);
    open();
    await vi.advanceTimersByTimeAsync(1_000);

    expect(endedAt).toHaveLength(401);
    const spanMs = endedAt.at(-1)! - endedAt[0]!;
    expect(spanMs).toBeGreaterThan(500);
    expect(busiest(endedAt, 100)).toBeLessThanOrEqual(1.5 * ((401 / spanMs) * 100));
  });

  it('waits for tasks that belong to no request, and for none that was begun after its lame duck', async () => {
    const { state } = start();
    state.tasks.add(0);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(state).toMatchObject({ stopped: true, closed: false });
    state.tasks.add(performance.now()).delete(0);
    await vi.advanceTimersByTimeAsync(SWEEP_MS);
    expect(state.closed).toBe(true);
  });

  it('ends its lame duck at once where the app has become unfit for requests', async () => {
    const lameDuck = new AbortController();
    const { state } = start({ lameDuck, signal: 'SIGINT' });
    state.tasks.add(0);
    await vi.advanceTimersByTimeAsync(1);
    lameDuck.abort();
    await vi.advanceTimersByTimeAsync(0);
    // In flight is what it was: that may end.
    expect(state).toMatchObject({ stopped: true, closed: false });
    state.tasks.delete(0);
    await vi.advanceTimersByTimeAsync(2 * SWEEP_MS);
    expect(state).toMatchObject({ closed: true, signal: 'SIGINT' });
  });
});

describe('clients that are sent away', () => {
  function start(count: number) {
    const present = new Set<unknown>(Array.from({ length: count }, (_, index) => index));
    const leave = vi.fn<(one: unknown) => void>();
    const over = sendAway({ present: () => [...present], leave }, 1_000);
    return { present, leave, over };
  }

  it('are asked once each, a few at a time, until they have left', async () => {
    const { present, leave, over } = start(50);
    await vi.advanceTimersByTimeAsync(50);
    expect(leave.mock.calls.length).toBeGreaterThan(20);
    expect(leave.mock.calls.length).toBeLessThan(40);
    await vi.advanceTimersByTimeAsync(200);
    expect(leave.mock.calls.flat()).toEqual([...present]);
    present.clear();
    await vi.advanceTimersByTimeAsync(50);
    await over;
  });

  it('are all asked within the time', async () => {
    const { present, leave, over } = start(10_000);
    await vi.advanceTimersByTimeAsync(500);
    expect(leave.mock.calls.length).toBeGreaterThan(3_000);
    await vi.advanceTimersByTimeAsync(600);
    expect(leave).toHaveBeenCalledTimes(10_000);
    present.clear();
    await vi.advanceTimersByTimeAsync(50);
    await over;
  });
});
