import { Registry } from 'prom-client';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import {
  type ClusterModuleOptions,
  resolveModuleOptions,
} from '../../../../src/contract/options/module.js';
import { resolveCpuBoundOptions } from '../../../../src/contract/options/cpu-bound.js';
import { nested, refusal as refusalOf } from '../../support/refusal.js';

beforeEach(() => void vi.stubEnv('VITEST', undefined));

const DEFAULTS = {
  health: { path: '/health', details: true, minReady: 1, indicators: [] },
  metrics: {
    path: '/metrics',
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registry: undefined,
    perWorker: false,
  },
  offload: {
    mode: 'threads',
    threads: 'auto',
    minThreads: 0,
    module: undefined,
    maxQueue: 10_000,
    timeoutMs: 30_000,
  },
};

const resolve = (options: unknown, env?: NodeJS.ProcessEnv) =>
  resolveModuleOptions(options as ClusterModuleOptions, env);
const refusal = (options: unknown) => refusalOf(() => resolve(options, {}));

/** The defaults, but for one key. */
function defaultsBut(key: string, value: unknown): object {
  const [group, name] = key.split('.') as [keyof typeof DEFAULTS, string | undefined];
  return {
    ...DEFAULTS,
    [group]: name === undefined ? value : { ...DEFAULTS[group], [name]: value },
  };
}

const MAX_TIMER_MS = 2 ** 31 - 1;
const NO_PATHS = ['health', '', '/', '/a/', '//a', '/a?b', '/a/:id', '/a/*', '/é', '/a\n', 5, null];
const NO_BUCKETS = [[], [1, 1], [2, 1], [0, 1], [-1, 1], [NaN], [1, Infinity], ['1', '2'], '1,2'];
const NO_FLAGS = ['yes', 1, null];

class Database {
  check = () => ({ database: { status: 'up' } }) as const;
}
/** A registry of another client. */
const ALIKE = { getMetricsAsJSON: async () => [] };

it('has these defaults, which are frozen, since all modules share them', () => {
  const nothing = { health: { path: undefined }, metrics: {}, offload: undefined };
  for (const options of [undefined, {}, nothing]) expect(resolve(options)).toEqual(DEFAULTS);
  const { health, metrics } = resolveModuleOptions();
  expect(Object.isFrozen(health && health.indicators)).toBe(true);
  expect(Object.isFrozen(metrics && metrics.buckets)).toBe(true);
});

it.each<[key: string, accepted: readonly unknown[], refused: readonly unknown[], allowed: string]>([
  ['health', [false], [true, '/x', 5, null, []], 'false, or an object'],
  ['metrics', [false], [true, '/x', 5, null, []], 'false, or an object'],
  ['offload', [], [false, null, 'inline', []], 'an object'],
  ['health.path', ['/-/healthz', '/a.b/c~d/_e'], NO_PATHS, "a path that begins with '/'"],
  ['metrics.path', ['/-/metrics', '/a.b/c~d/_e'], NO_PATHS, "a path that begins with '/'"],
  [
    'health.minReady',
    [1, 2, 300, 0.5, 0.01, 'all'],
    [0, -1, 1.5, -0.5, NaN, Infinity, '1', 'most', null],
    "'all', a whole number of at least 1, or a fraction between 0 and 1",
  ],
  ['health.details', [true, false], NO_FLAGS, 'true or false'],
  [
    'health.indicators',
    [[], [Database, () => ({ cache: { status: 'degraded', hits: 3 } })]],
    [{}],
    'a list of functions and of injectable classes with check()',
  ],
  [
    'metrics.buckets',
    [[1], [0.001, 0.5, 60]],
    [...NO_BUCKETS, null],
    'one or more positive numbers of seconds, ascending',
  ],
  [
    'metrics.registry',
    [new Registry(), ALIKE],
    [{}, null, 'register'],
    'a Registry from prom-client or @prometheus-io/client',
  ],
  ['metrics.perWorker', [true, false], NO_FLAGS, 'true or false'],
  [
    'offload.threads',
    [1, 256, 'auto'],
    [0, -1, 1.5, 257, NaN, '2', 'all', null],
    "'auto' or a whole number from 1 to 256",
  ],
  [
    'offload.minThreads',
    [0, 256],
    [-1, 1.5, 257, NaN, '2', 'auto', null],
    'a whole number from 0 to 256',
  ],
  ['offload.module', [class Tools {}], ['Tools', {}, null, 5], 'a class with @Module()'],
  [
    'offload.maxQueue',
    [0, 1_000_000],
    [-1, 1.5, 1_000_001, Infinity, '5', null],
    'a whole number from 0 to 1000000',
  ],
  [
    'offload.timeoutMs',
    [1, MAX_TIMER_MS],
    [0, -1, NaN, Infinity, MAX_TIMER_MS + 1, '5', null],
    `a number of milliseconds from 1 to ${MAX_TIMER_MS}`,
  ],
])('takes %s, or refuses it', (key, accepted, refused, allowed) => {
  for (const value of accepted) {
    expect(resolve(nested(key, value), {})).toEqual(defaultsBut(key, value));
  }
  for (const value of refused) {
    const message = refusal(nested(key, value));
    // A list is refused by the index of its wrong element.
    expect(message).toMatch(new RegExp(`${key}(\\.\\d)?: `));
    expect(message).toContain(` is not allowed; expected ${allowed}`);
  }
});

it('refuses an unknown key with those that are known', () => {
  expect(refusal({ health: { detail: false } })).toMatch(
    /health\.detail:.*path, details, minReady/,
  );
  expect(refusal({ helth: {} })).toMatch(/helth:.*known options: health, metrics/);
});

describe('offload', () => {
  it.each([
    [
      { CLUSTER_OFFLOAD: 'inline', CLUSTER_THREADS: '7' },
      { mode: 'inline', threads: 7 },
    ],
    [{ CLUSTER_OFFLOAD: 'threads' }, { mode: 'threads', threads: 2 }],
    [{ CLUSTER_THREADS: 'auto' }, { mode: 'threads', threads: 'auto' }],
  ])('gives way to the environment: %j', (env, expected) => {
    const { offload } = resolve({ offload: { threads: 2, maxQueue: 3 } }, env);
    expect(offload).toEqual({ ...DEFAULTS.offload, ...expected, maxQueue: 3 });
  });

  it.each([
    [{ VITEST: 'true' }, 'vitest'],
    [{ VITEST: 'true', CLUSTER_OFFLOAD: 'threads' }, 'threads'],
    [{ VITEST: 'true', CLUSTER_OFFLOAD: 'inline' }, 'inline'],
  ] as const)(
    'starts threads in a test of Vitest only if the environment says so: %j',
    (env, mode) => {
      expect(resolve({}, env).offload.mode).toBe(mode);
    },
  );

  it('starts threads in a program that a test of Vitest has started', () => {
    const holder = globalThis as { __vitest_worker__?: unknown };
    const worker = holder.__vitest_worker__;
    delete holder.__vitest_worker__;
    const { offload } = resolve({}, { VITEST: 'true' });
    holder.__vitest_worker__ = worker;
    expect(offload.mode).toBe('threads');
  });
});

it('refuses metrics on a path of health, if both are served', () => {
  for (const path of ['/health', '/health/live', '/health/ready']) {
    expect(refusal({ metrics: { path } })).toContain(
      `health.path ("/health") and metrics.path ("${path}") name the same endpoint; change one`,
    );
  }
  for (const options of [
    { metrics: { path: '/metrics/live' } },
    { health: false, metrics: { path: '/health' } },
    { health: { path: '/metrics' }, metrics: false },
  ]) {
    expect(resolve(options)).toMatchObject(options);
  }
});

it('checks the options of @CpuBound(), and names its method', () => {
  const check = (options: unknown) => resolveCpuBoundOptions(options, 'Cats.count()');
  const most = { name: 'x'.repeat(100), timeoutMs: MAX_TIMER_MS, queue: 'a_B.9-' };
  for (const options of [{}, { name: 'a_B.9:-', timeoutMs: 1, abortOnDisconnect: true }, most]) {
    expect(check(options)).toEqual(options);
  }
  for (const [key, expected, values] of [
    ['name', "1 to 100 letters, digits, '_', '.', ':' or '-'", ['', 'a b', 'é', 'a\n', 5]],
    ['name', '1 to 100 letters', ['x'.repeat(101)]],
    ['timeoutMs', 'a number of milliseconds from 1', [0, NaN, MAX_TIMER_MS + 1, '5']],
    ['abortOnDisconnect', 'true or false', [1, null]],
    ['queue', "1 to 100 letters, digits, '_', '.' or '-'", ['', 'a:b', 'x'.repeat(101)]],
    ['timeout', 'known options: name, timeoutMs, abortOnDisconnect', [5]],
  ] as const) {
    for (const value of values) {
      const message = refusalOf(() => check({ [key]: value }));
      expect(message).toContain(`options for @CpuBound() on Cats.count(): ${key}: `);
      expect(message).toContain(expected);
    }
  }
});
