import { Logger } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { setCurrentLink } from '../support/current-link.js';
import { ClusterThrottlerStorage } from '../../../src/throttler/index.js';
import { HubCore } from '../../../src/thread/hub-core.js';
import { connect, enterWorker, forgetHub } from '../support/hub-workers.js';

const warned = vi.fn();

beforeEach(() => {
  vi.spyOn(Logger.prototype, 'warn').mockImplementation(warned);
  setCurrentLink({ thread: () => async () => '' } as never);
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  warned.mockReset();
  setCurrentLink(undefined);
  forgetHub();
});

/** The storage of a worker. */
async function start() {
  const connection = connect(new HubCore(), 0);
  enterWorker(connection.hub);
  const storage = new ClusterThrottlerStorage();
  await storage.onModuleInit();
  const send = (limit = 2) => storage.increment('client', 1_000, limit, 0, 'default');
  return { ...connection, send };
}

describe('a limit while the hub is silent', () => {
  it('waits a second for it by default', async () => {
    const { send, state, deliver } = await start();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    state.holding = true;
    const sent = send();
    await vi.advanceTimersByTimeAsync(999);
    deliver();
    expect(await sent).toMatchObject({ totalHits: 1, isBlocked: false });
    expect(warned).not.toHaveBeenCalled();
  });

  it('is that of the worker alone, and the log says so once a minute', async () => {
    const { send, lost, hub } = await start();
    lost.add('count');
    const all = await Promise.all([send(), send(), send()]);
    expect(all.map(({ isBlocked }) => isBlocked)).toEqual([false, false, true]);
    expect(hub.outcomes.get('count timeout')).toBe(3);
    expect(warned).toHaveBeenCalledTimes(1);
    expect(warned.mock.calls[0]![0]).toMatch(
      /the hub did not answer within 1000 ms; this worker counts/,
    );
  });
});
