import { Registry } from 'prom-client';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ClusterConfigurationError } from '../../../../src/contract/errors/index.js';
import {
  type ClusterModuleOptions,
  type HealthOptions,
  type MetricsOptions,
  type OffloadOptions,
  resolveModuleOptions,
} from '../../../../src/contract/options/module.js';

beforeEach(() => void vi.stubEnv('VITEST', undefined));
afterEach(() => void vi.unstubAllEnvs());

const DEFAULT_HEALTH = {
  path: '/health',
  details: true,
  minReady: 1,
  indicators: [],
};
const DEFAULT_METRICS = {
  path: '/metrics',
  buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  registry: undefined,
  perWorker: false,
};

const DEFAULT_OFFLOAD = {
  mode: 'threads',
  threads: 'auto',
  minThreads: 0,
  module: undefined,
  maxQueue: 10_000,
  timeoutMs: 30_000,
};

function refusal(options: unknown): string {
  try {
    resolveModuleOptions(options as ClusterModuleOptions);
  } catch (error) {
    expect(error).toBeInstanceOf(ClusterConfigurationError);
    expect(error).toMatchObject({ code: 'CLUSTER_CONFIGURATION', exitCode: 78 });
    return (error as Error).message;
  }
  throw new Error('the options were accepted');
}

const health = (options: HealthOptions) => resolveModuleOptions({ health: options }).health;
const metrics = (options: MetricsOptions) => resolveModuleOptions({ metrics: options }).metrics;

describe('defaults of forRoot()', () => {
  it.each([undefined, {}, { health: undefined, metrics: undefined }, { health: {}, metrics: {} }])(
    'hold for %j',
    (options) => {
      expect(resolveModuleOptions(options)).toEqual({
        health: DEFAULT_HEALTH,
        metrics: DEFAULT_METRICS,
        offload: DEFAULT_OFFLOAD,
      });
    },
  );

  it('hold key by key inside a group, also where a key is undefined', () => {
    expect(health({ details: false, path: undefined as never })).toEqual({
      ...DEFAULT_HEALTH,
      details: false,
    });
    expect(metrics({ path: '/m', buckets: undefined as never })).toEqual({
      ...DEFAULT_METRICS,
      path: '/m',
    });
  });

  it('are frozen, since all modules share them', () => {
    const { health, metrics } = resolveModuleOptions();
    if (health === false || metrics === false) throw new Error('one of them is off');
    expect(Object.isFrozen(health.indicators)).toBe(true);
    expect(Object.isFrozen(metrics.buckets)).toBe(true);
  });
});

describe('health', () => {
  it('may be false', () => {
    expect(resolveModuleOptions({ health: false })).toEqual({
      health: false,
      metrics: DEFAULT_METRICS,
      offload: DEFAULT_OFFLOAD,
    });
  });

  it.each(['/health', '/-/healthz', '/a.b/c~d/_e'])('may have the path %s', (path) => {
    expect(health({ path })).toMatchObject({ path });
  });

  it.each([1, 2, 300, 0.5, 0.01, 'all'] as const)('may want %s ready workers', (minReady) => {
    expect(health({ minReady })).toMatchObject({ minReady });
  });

  it.each([
    ['0', 0],
    ['-1', -1],
    ['1.5', 1.5],
    ['-0.5', -0.5],
    ['NaN', NaN],
    ['Infinity', Infinity],
    ['"1"', '1'],
    ['"most"', 'most'],
    ['null', null],
  ])('refuses to want %s ready workers', (shown, minReady) => {
    const message = refusal({ health: { minReady } });
    expect(message).toContain(`health.minReady: ${shown} `);
    expect(message).toContain("'all', a whole number from 1, or a share above 0 and below 1");
  });

  it.each([
    ['"yes"', 'yes'],
    ['1', 1],
    ['null', null],
  ])('refuses details as %s', (shown, details) => {
    const message = refusal({ health: { details } });
    expect(message).toContain(`details: ${shown} `);
    expect(message).toContain('true or false');
  });

  it('may have indicators of the app', () => {
    class Database {
      check = () => ({ database: { status: 'up' } }) as const;
    }
    const options = {
      indicators: [Database, () => ({ cache: { status: 'degraded', hits: 3 } }) as const],
    };
    expect(health(options)).toEqual({ ...DEFAULT_HEALTH, ...options });
  });

  it.each([
    ['indicators', 'an object', {}, 'a list of functions and of injectable classes with check()'],
    ['indicators.1', '"db"', [() => ({}), 'db'], 'a list of functions and of injectable classes'],
  ])('refuses %s as %s', (key, shown, value, expected) => {
    const message = refusal({ health: { [key.split('.')[0]!]: value } });
    expect(message).toContain(`health.${key}: ${shown} is not allowed; expected ${expected}`);
  });

  it('refuses an unknown key with those that are known', () => {
    expect(refusal({ health: { detail: false } })).toMatch(
      /health.*detail:.*path, details, minReady/,
    );
  });
});

describe('metrics', () => {
  it('may be false', () => {
    expect(resolveModuleOptions({ metrics: false })).toEqual({
      health: DEFAULT_HEALTH,
      metrics: false,
      offload: DEFAULT_OFFLOAD,
    });
  });

  it.each([[[1]], [[0.001, 0.5, 60]]])('may have the buckets %j', (buckets) => {
    expect(metrics({ buckets })).toMatchObject({ buckets });
  });

  it.each([
    ['empty', []],
    ['not rising', [1, 1]],
    ['falling', [2, 1]],
    ['with zero', [0, 1]],
    ['negative', [-1, 1]],
    ['with NaN', [NaN]],
    ['infinite', [1, Infinity]],
    ['of texts', ['1', '2']],
    ['a text', '1,2'],
    ['null', null],
  ])('refuses buckets that are %s', (_, buckets) => {
    const message = refusal({ metrics: { buckets } });
    expect(message).toContain('buckets');
    expect(message).toContain('a rising list of at least one positive number of seconds');
  });

  it('may have a registry of the app, also one of another copy of prom-client', () => {
    const registry = new Registry();
    expect(metrics({ registry })).toMatchObject({ registry });
    const alike = { getMetricsAsArray: () => [] } as unknown as Registry;
    expect(metrics({ registry: alike })).toMatchObject({ registry: alike });
  });

  it.each([
    ['an object', {}],
    ['null', null],
    ['"register"', 'register'],
  ])('refuses %s as registry', (shown, registry) => {
    const message = refusal({ metrics: { registry } });
    expect(message).toContain(`registry: ${shown} `);
    expect(message).toContain('a Registry of prom-client');
  });

  it('refuses an unknown key with those that are known', () => {
    expect(refusal({ metrics: { bucket: [1] } })).toMatch(
      /metrics.*bucket:.*path, buckets, registry, perWorker/,
    );
  });

  it.each([true, false])('takes perWorker: %s', (perWorker) => {
    expect(metrics({ perWorker })).toMatchObject({ perWorker });
  });

  it.each(['yes', 1, null])('refuses perWorker that is not a flag: %j', (perWorker) => {
    expect(refusal({ metrics: { perWorker } })).toMatch(/metrics\.perWorker: .*true or false/);
  });
});

describe('offload', () => {
  const offload = (options: OffloadOptions) =>
    resolveModuleOptions({ offload: options }, {}).offload;
  class Tools {}
  const MAX_TIMER_MS = 2 ** 31 - 1;

  it('has its defaults key by key, also where a key is undefined', () => {
    expect(offload({ threads: undefined, maxQueue: 5 })).toEqual({
      ...DEFAULT_OFFLOAD,
      maxQueue: 5,
    });
  });

  it.each([
    ['threads', 1],
    ['threads', 256],
    ['threads', 'auto'],
    ['minThreads', 0],
    ['minThreads', 256],
    ['module', Tools],
    ['maxQueue', 0],
    ['maxQueue', 1_000_000],
    ['timeoutMs', 1],
    ['timeoutMs', MAX_TIMER_MS],
  ])('may have %s of %o', (key, value) => {
    expect(offload({ [key]: value })).toEqual({ ...DEFAULT_OFFLOAD, [key]: value });
  });

  it.each([
    ['threads', "'auto' or a whole number from 1 to 256", [0, -1, 1.5, 257, NaN, '2', 'all', null]],
    ['minThreads', 'a whole number from 0 to 256', [-1, 1.5, 257, NaN, '2', 'auto', null]],
    ['module', 'a class with @Module()', ['Tools', {}, null, 5]],
    ['maxQueue', 'a whole number from 0 to 1000000', [-1, 1.5, 1_000_001, Infinity, '5', null]],
    [
      'timeoutMs',
      `a number of milliseconds from 1 to ${MAX_TIMER_MS}`,
      [0, -1, NaN, Infinity, MAX_TIMER_MS + 1, '5', null],
    ],
  ])('refuses %s that is not %s', (key, expected, values) => {
    for (const value of values) {
      const message = refusal({ offload: { [key]: value } });
      expect(message).toContain(`offload.${key}: `);
      expect(message).toContain(expected);
    }
  });

  it('refuses an unknown key with those that are known', () => {
    expect(refusal({ offload: { thread: 5 } })).toMatch(
      /offload\.thread:.*known are threads, minThreads, module, maxQueue, timeoutMs/,
    );
  });

  it.each([[false], [null], ['inline'], [[]]])('is refused as %j', (value) => {
    expect(refusal({ offload: value })).toMatch(/offload: .* is not allowed; expected an object/);
  });

  it.each([
    [
      { CLUSTER_OFFLOAD: 'inline', CLUSTER_THREADS: '7' },
      { mode: 'inline', threads: 7 },
    ],
    [{ CLUSTER_OFFLOAD: 'threads' }, { mode: 'threads', threads: 2 }],
    [{ CLUSTER_THREADS: 'auto' }, { mode: 'threads', threads: 'auto' }],
    [
      { CLUSTER_OFFLOAD: '', CLUSTER_THREADS: '' },
      { mode: 'threads', threads: 2 },
    ],
  ])('gives way to the environment: %j', (env, expected) => {
    const { offload: resolved } = resolveModuleOptions(
      { offload: { threads: 2, maxQueue: 3 } },
      env,
    );
    expect(resolved).toEqual({ ...DEFAULT_OFFLOAD, ...expected, maxQueue: 3 });
  });

  it.each([
    [{ VITEST: 'true' }, 'vitest'],
    [{ VITEST: 'true', CLUSTER_OFFLOAD: 'threads' }, 'threads'],
    [{ VITEST: 'true', CLUSTER_OFFLOAD: 'inline' }, 'inline'],
  ] as const)(
    'starts threads in a test of Vitest only if the environment says so: %j',
    (env, mode) => {
      expect(resolveModuleOptions({}, env).offload.mode).toBe(mode);
    },
  );

  it('starts threads in a program that a test of Vitest has started', () => {
    const holder = globalThis as { __vitest_worker__?: unknown };
    const worker = holder.__vitest_worker__;
    delete holder.__vitest_worker__;
    const { offload } = resolveModuleOptions({}, { VITEST: 'true' });
    holder.__vitest_worker__ = worker;
    expect(offload.mode).toBe('threads');
  });

  it('is refused by an environment that is wrong', () => {
    expect(() => resolveModuleOptions({}, { CLUSTER_OFFLOAD: 'no' })).toThrow(
      /CLUSTER_OFFLOAD: "no" is not allowed; expected one of 'threads', 'inline'/,
    );
  });
});

describe.each(['health', 'metrics'])('%s', (group) => {
  it.each(['health', '', '/', '/a/', '//a', '/a?b', '/a/:id', '/a/*', '/é', '/a\n', 5, null])(
    'refuses the path %j',
    (path) => {
      const message = refusal({ [group]: { path } });
      expect(message).toContain(`${group}.path: ${JSON.stringify(path)} `);
      expect(message).toContain("a path that begins with '/'");
    },
  );

  it.each([
    ['true', true],
    ['"/x"', '/x'],
    ['5', 5],
    ['null', null],
    ['an array', []],
  ])('is refused as %s', (shown, value) => {
    const message = refusal({ [group]: value });
    expect(message).toContain(group);
    expect(message).toContain(`: ${shown} is not allowed`);
    expect(message).toContain('an object');
  });
});

describe('module options', () => {
  it('are refused with an unknown key', () => {
    expect(refusal({ helth: {} })).toMatch(/helth:.*known are health, metrics/);
  });

  it.each(['/health', '/health/live', '/health/ready'])(
    'are refused where metrics are at %s, which is health',
    (path) => {
      const message = refusal({ metrics: { path } });
      expect(message).toContain(`metrics.path ("${path}")`);
      expect(message).toContain('health.path ("/health")');
      expect(message).toContain('change one');
    },
  );

  it('are refused where health is moved onto the metrics', () => {
    expect(refusal({ health: { path: '/metrics' } })).toContain('same endpoint');
  });

  it('may use the path of an endpoint that is off', () => {
    expect(metrics({ path: '/metrics/live' })).toMatchObject({ path: '/metrics/live' });
    expect(
      resolveModuleOptions({ health: false, metrics: { path: '/health' } }).metrics,
    ).toMatchObject({ path: '/health' });
    expect(
      resolveModuleOptions({ health: { path: '/metrics' }, metrics: false }).health,
    ).toMatchObject({ path: '/metrics' });
  });

  it('have the problems of both groups named in one message', () => {
    const message = refusal({ health: { path: 'a' }, metrics: { perWorker: 9 } });
    expect(message).toContain('path: "a"');
    expect(message).toContain('perWorker: 9');
  });
});
