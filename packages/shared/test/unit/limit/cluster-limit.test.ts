import { afterEach, describe, expect, it, vi } from 'vitest';
import { ClusterLimit, ClusterLimitException } from '../../../src/limit/index.js';
import { HubClient } from '../../../src/client/hub-client.js';
import { HubCore } from '../../../src/thread/hub-core.js';
import { connect, enterWorker, forgetHub, idle } from '../support/hub-workers.js';

afterEach(forgetHub);

/** The limit of a worker, made there. */
function limitOf(core: HubCore, slot: number, options: object = {}, name = 'tenant') {
  const worker = connect(core, slot);
  enterWorker(worker.hub);
  const limit = new ClusterLimit(name, { max: 2, ...options });
  const running = new Set<string>();
  return {
    ...worker,
    limit,
    running,
    /** Runs until the returned function is called. The first call also connects this worker. */
    start: (key: string, label: string) => {
      enterWorker(worker.hub);
      let end = (): void => {};
      const ended = new Promise<void>((resolve) => (end = resolve));
      const result = limit.run(key, async () => {
        running.add(label);
        await ended;
        running.delete(label);
        return label;
      });
      result.catch(() => {});
      return { result, end };
    },
  };
}

const REFUSED = { status: 503, limit: 'tenant', key: 'k', retryAfterSeconds: 1 };

describe('a limit of the cluster', () => {
  it('runs as many at once as it allows, over all workers, in the order of their calls', async () => {
    const core = new HubCore();
    const [one, two] = [limitOf(core, 0), limitOf(core, 1)];
    const running = () => [...one.running, ...two.running].toSorted();
    const a = one.start('k', 'a');
    await idle();
    const b = two.start('k', 'b');
    await idle();
    const c = two.start('k', 'c');
    await idle();
    const d = one.start('k', 'd');
    await idle();
    expect(running()).toEqual(['a', 'b']);
    a.end();
    expect(await a.result).toBe('a');
    await idle();
    expect(running()).toEqual(['b', 'c']);
    b.end();
    await idle();
    expect(running()).toEqual(['c', 'd']);
    c.end();
    d.end();
    expect(await Promise.all([c.result, d.result])).toEqual(['c', 'd']);
  });

  it('counts each key, and each limit, by itself', async () => {
    const core = new HubCore();
    const [one, two] = [limitOf(core, 0, { waitMs: 0 }), limitOf(core, 1, { waitMs: 0 }, 'other')];
    for (const label of ['a', 'b']) one.start('k', label);
    for (const label of ['c', 'd']) one.start('l', label);
    for (const label of ['e', 'f']) two.start('k', label);
    await idle();
    expect([one.running.size, two.running.size]).toEqual([4, 2]);
    await expect(one.start('k', 'g').result).rejects.toMatchObject(REFUSED);
  });

  it('lets as many wait as it allows, by default as many as run, and refuses others at once', async () => {
    const core = new HubCore();
    const [one, none] = [
      limitOf(core, 0, { waitMs: 60_000 }),
      limitOf(core, 1, { maxWaiting: 0, waitMs: 60_000 }),
    ];
    for (const label of ['a', 'b', 'c', 'd']) one.start('k', label);
    await idle();
    await expect(one.start('k', 'e').result).rejects.toMatchObject(REFUSED);
    for (const label of ['a', 'b']) none.start('l', label);
    await idle();
    await expect(none.start('l', 'c').result).rejects.toMatchObject({ ...REFUSED, key: 'l' });
  });

  it('refuses a call that has waited for its time, and says when to try again', async () => {
    const { start, limit, running } = limitOf(new HubCore(), 0, { max: 1, waitMs: 20 });
    const first = start('k', 'a');
    await idle();
    const response = { header: vi.fn() };
    const fn = vi.fn();
    const refused = await limit.run('k', fn, response).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(ClusterLimitException);
    expect(refused).toMatchObject({
      ...REFUSED,
      cause: undefined,
      message: "the limit 'tenant' was reached; try again later",
    });
    expect(response.header.mock.calls).toEqual([['Retry-After', '1']]);
    expect(fn).not.toHaveBeenCalled();
    first.end();
    await first.result;
    expect(await limit.run('k', () => 'next', response)).toBe('next');
    expect(response.header).toHaveBeenCalledTimes(1);
    expect(running.size).toBe(0);
  });

  it('frees the place of a call that fails, and throws its error', async () => {
    const { limit } = limitOf(new HubCore(), 0, { max: 1, waitMs: 0 });
    const fails = () => {
      throw new Error('of the call');
    };
    await expect(limit.run('k', fails)).rejects.toThrow('of the call');
    await expect(limit.run('k', async () => fails())).rejects.toThrow('of the call');
    expect(await limit.run('k', (signal) => signal.aborted)).toBe(false);
  });

  it('answers 503 while there can be no hub, and names no path', async () => {
    const hub = new HubClient((events) => {
      queueMicrotask(() => events.unavailable('no directory can be made in /tmp'));
      return () => false;
    });
    enterWorker(hub);
    const response = { header: vi.fn() };
    const refused = new ClusterLimit('tenant', { max: 1 }).run('k', vi.fn(), response);
    await expect(refused).rejects.toMatchObject({
      ...REFUSED,
      message: "the limit 'tenant' cannot be checked now; try again later",
      cause: { message: expect.stringContaining('no directory') },
    });
    expect(response.header).toHaveBeenCalledWith('Retry-After', '1');
  });

  it.each(['', undefined, 5, 'k'.repeat(1_025)])('refuses the key %.10o', async (key) => {
    const fn = vi.fn();
    const run = new ClusterLimit('tenant', { max: 1 }).run(key as string, fn);
    await expect(run).rejects.toMatchObject({
      code: 'CLUSTER_CONFIGURATION',
      message: expect.stringMatching(
        /^invalid key of a limit: .* expected a string of 1 to 1024 char/,
      ),
    });
    expect(fn).not.toHaveBeenCalled();
  });

  it.each([
    ['', { max: 1 }, /name of a limit: "" is not allowed/],
    ['tenant', undefined, /max: undefined is not allowed/],
    ['tenant', { max: 0 }, /max: 0 is not allowed/],
    ['tenant', { max: 1, maxWaiting: -1 }, /maxWaiting: -1 is not allowed/],
    ['tenant', { max: 1, waitMs: 2 ** 31 }, /waitMs: 2147483648 is not allowed/],
    ['tenant', { max: 1, wait: 1 }, /wait is not allowed; known keys: max, maxWaiting, waitMs/],
  ])('refuses the name %o with the options %o', (name, options, message) => {
    expect(() => new ClusterLimit(name, options as never)).toThrow(message);
  });
});
