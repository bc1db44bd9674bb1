import { afterEach, expect, it, vi } from 'vitest';
import { ClusterLock } from '../../../src/lock/index.js';
import { forgetHub } from '../support/hub-workers.js';

afterEach(forgetHub);

it.each([
  [{ waitms: 5 }, /waitms is not allowed; known keys: waitMs/],
  [{ waitMs: -1 }, /waitMs: -1 is not allowed; expected a number of milliseconds from 0 to/],
  [{ waitMs: 2 ** 31 }, /waitMs: 2147483648 is not allowed/],
])('runExclusive() refuses the options %o, and runs nothing', async (options, message) => {
  const fn = vi.fn();
  const run = new ClusterLock().runExclusive('l', fn, options as never);
  await expect(run).rejects.toMatchObject({
    code: 'CLUSTER_CONFIGURATION',
    message: expect.stringMatching(message),
  });
  expect(fn).not.toHaveBeenCalled();
});

it.each([
  ['', '""'],
  [undefined, 'undefined'],
  ['l'.repeat(1_025), '"lll'],
])('runExclusive() refuses the name %.10o', async (name, seen) => {
  const run = new ClusterLock().runExclusive(name as string, vi.fn());
  await expect(run).rejects.toThrow(`name of a lock: ${seen}`);
});

it('runExclusive() waits for itself inside itself, until its time is over', async () => {
  const lock = new ClusterLock();
  const inner = vi.fn();
  const nested = lock.runExclusive('l', () => lock.runExclusive('l', inner, { waitMs: 20 }));
  await expect(nested).rejects.toMatchObject({ code: 'CLUSTER_LOCK_TIMEOUT' });
  expect(inner).not.toHaveBeenCalled();
  expect(await lock.runExclusive('l', ({ token }) => token > 0, { waitMs: 0 })).toBe(true);
});
