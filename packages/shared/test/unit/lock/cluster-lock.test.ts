import { afterEach, expect, it, vi } from 'vitest';
import { ClusterLock } from '../../../src/lock/index.js';
import { forgetHub } from '../support/hub-workers.js';

afterEach(forgetHub);

const CIRCLE: Record<string, unknown> = {};
CIRCLE['itself'] = CIRCLE;

it.each([
  [{ waitms: 5 }, /waitms: 5 is not allowed; no such option here; known are waitMs/],
  [{ waitMs: -1 }, /waitMs: -1 is not allowed; expected a number of milliseconds from 0 to/],
  [{ waitMs: 2 ** 31 }, /waitMs: 2147483648 is not allowed/],
  [null, /invalid options of runExclusive\(\): .* null is not allowed; expected an object with/],
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
  [5, '5'],
  ['l'.repeat(1_025), '"lll'],
  [5n, '5'],
  [CIRCLE, 'an object'],
])('runExclusive() refuses the name %.10o', async (name, seen) => {
  const run = new ClusterLock().runExclusive(name as string, vi.fn());
  await expect(run).rejects.toThrow(`runExclusive() was given the name ${seen}`);
});
