import { Logger } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { setCurrentLink } from '../support/current-link.js';
import {
  type ClusterThrottlerOptions,
  ClusterThrottlerStorage,
} from '../../../src/throttler/index.js';
import { HubCore } from '../../../src/thread/hub-core.js';
import { connect, enterWorker, forgetHub, idle } from '../support/hub-workers.js';

const warned = vi.fn();

beforeEach(() => {
  vi.spyOn(Logger.prototype, 'warn').mockImplementation(warned);
  setCurrentLink({ findHub: () => async () => ({ path: '', token: '' }) } as never);
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  warned.mockReset();
  setCurrentLink(undefined);
  forgetHub();
});

/** The storage of a worker. */
async function start(options?: ClusterThrottlerOptions) {
  const connection = connect(new HubCore(), 0);
  enterWorker(connection.hub);
  const storage = new ClusterThrottlerStorage(options);
  await storage.onModuleInit();
  const send = (limit = 2) => storage.increment('client', 1_000, limit, 0, 'default');
  return { ...connection, send };
}

describe('a limit while the hub is silent', () => {
  it('waits a second for it by default', async () => {
    const { send, state, deliver } = await start();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    state.holding = true;
    const sent = send();
    await vi.advanceTimersByTimeAsync(999);
    deliver();
    expect(await sent).toMatchObject({ totalHits: 1, isBlocked: false });
    expect(warned).not.toHaveBeenCalled();
  });

  it('is that of the worker alone, and the log says so once a minute', async () => {
    const { send, lost, hub } = await start({ deadlineMs: 1 });
    lost.add('count');
    const blocked = [await send(), await send(), await send()].map(({ isBlocked }) => isBlocked);
    expect(blocked).toEqual([false, false, true]);
    expect(hub.outcomes.get('throttler local')).toBe(3);
    expect(warned).toHaveBeenCalledTimes(1);
    expect(warned.mock.calls[0]![0]).toMatch(
      /the hub did not answer within 1 ms; this worker counts/,
    );
  });

  it('refuses with 503 where that is wanted', async () => {
    const { send, lost, hub } = await start({ deadlineMs: 1, onHubSilent: 'refuse' });
    lost.add('count');
    await expect(send()).rejects.toMatchObject({ status: 503 });
    expect(hub.outcomes.get('throttler refuse')).toBe(1);
  });

  it('lets all pass where that is wanted', async () => {
    const { send, lost, hub } = await start({ deadlineMs: 1, onHubSilent: 'allow' });
    lost.add('count');
    const blocked = [await send(), await send(), await send()].map(({ isBlocked }) => isBlocked);
    expect(blocked).toEqual([false, false, false]);
    expect(hub.outcomes.get('throttler allow')).toBe(3);
  });

  it('is that of when the requests came, once the hub goes on', async () => {
    const { send, delayed } = await start({ deadlineMs: 1 });
    const readLater = delayed('count');
    for (let n = 0; n < 25; n += 1) await send(25);
    const [seconds, nanoseconds] = process.hrtime();
    vi.spyOn(process, 'hrtime').mockReturnValue([seconds + 3, nanoseconds]);
    readLater();
    await idle(); // its answers say that it is no longer silent
    expect(await send(25)).toMatchObject({ totalHits: 1, isBlocked: false });
  });
});

it.each([
  [{ deadlineMs: 0 }, /deadlineMs: 0/],
  [{ deadlineMs: 2 ** 31 }, /deadlineMs/],
  [{ onHubSilent: 'no' }, /onHubSilent: "no".*'local', 'refuse', 'allow'/],
  [{ deadline: 1 }, /deadline: 1 is not allowed.*known are deadlineMs, onHubSilent/],
])('options %o are refused', (options, message) => {
  const make = () => new ClusterThrottlerStorage(options as ClusterThrottlerOptions);
  expect(make).toThrow(message);
});
