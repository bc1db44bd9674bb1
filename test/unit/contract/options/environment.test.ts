import { describe, expect, it } from 'vitest';
import {
  type ClusterOptions,
  clusterOptions,
  resolveOptions,
} from '../../../../src/contract/options/resolve.js';
import {
  leavesOf,
  offloadVariables,
  readVariables,
} from '../../../../src/contract/options/checks.js';
import { at, refusal as refusalOf } from '../../support/refusal.js';

const resolve = (env: NodeJS.ProcessEnv, options: ClusterOptions = {}) =>
  resolveOptions(options, env, () => 4);

const read = (env: NodeJS.ProcessEnv) => ({
  ...readVariables(clusterOptions, env),
  offload: readVariables(offloadVariables, env),
});

const refusal = (env: NodeJS.ProcessEnv) => refusalOf(() => resolve(env));

const MS = 'a number of milliseconds from 0 to 2147483647';
const BYTES = 'a whole number from 16777216 to 9007199254740991';
const WORKERS = "'auto' or a whole number from 0 to 256";
const TOKEN = '16 to 512 ASCII characters without spaces';

/** Each variable with its option, a text and its value, a text that is refused, and what is allowed. */
const VARIABLES: readonly (readonly [string, string, string, unknown, string, string])[] = [
  ['CLUSTER_WORKERS', 'workers', '256', 256, '257', WORKERS],
  ['WEB_CONCURRENCY', 'workers', 'auto', 'auto', 'Auto', WORKERS],
  ['CLUSTER_BALANCING', 'balancing', 'ports', 'ports', 'fair', "one of 'shared', 'reuse-port'"],
  ['CLUSTER_LOG_FORMAT', 'log.format', 'json', 'json', 'xml', "one of 'text', 'json'"],
  ['CLUSTER_LOG_LEVEL', 'log.level', 'debug', 'debug', '30', "one of 'debug', 'info', 'warn'"],
  ['CLUSTER_OFFLOAD', 'offload.mode', 'inline', 'inline', '0', "one of 'threads', 'inline'"],
  ['CLUSTER_THREADS', 'offload.threads', '1', 1, '0', "'auto' or a whole number from 1 to 256"],
  ['CLUSTER_SHUTDOWN_LAME_DUCK_MS', 'shutdown.lameDuckMs', '0', 0, '10s', MS],
  ['CLUSTER_SHUTDOWN_DRAIN_TIMEOUT_MS', 'shutdown.drainTimeoutMs', '7', 7, `${2 ** 31}`, MS],
  ['CLUSTER_SHUTDOWN_KILL_TIMEOUT_MS', 'shutdown.killTimeoutMs', '9', 9, 'Infinity', MS],
  ['CLUSTER_MEMORY_SOFT_LIMIT_BYTES', 'memory.softLimitBytes', '99999999', 99_999_999, '5', BYTES],
  ['CLUSTER_MEMORY_HARD_LIMIT_BYTES', 'memory.hardLimitBytes', '16777216', 2 ** 24, '1e9', BYTES],
  ['CLUSTER_ADMIN_PORT', 'admin.port', '0', 0, '03000', 'a whole number from 0 to 65535'],
  ['CLUSTER_ADMIN_HOST', 'admin.host', '0.0.0.0', '0.0.0.0', 'pod', 'an IP address'],
  // A token of digits is not a number.
  ['CLUSTER_ADMIN_TOKEN', 'admin.token', '1'.repeat(16), '1'.repeat(16), 'short', TOKEN],
];

it('has a row above for each variable', () => {
  const all = [...leavesOf(clusterOptions), ...leavesOf(offloadVariables, ['offload'])].flatMap(
    ({ path, names = [] }) => names.map((name) => [name, path.join('.')]),
  );
  const rows = VARIABLES.map(([name, key]) => [name, key]);
  expect(Object.fromEntries(rows)).toEqual(Object.fromEntries(all));
});

it.each(VARIABLES)(
  '%s is read, unless it is empty or wrong',
  (name, key, text, value, wrong, allowed) => {
    expect(at(read({ [name]: text }), key)).toBe(value);
    expect(read({ [name]: '' })).toEqual({ offload: {} });
    const seen = name === 'CLUSTER_ADMIN_TOKEN' ? 'its value' : wrong;
    const message = refusal({ [name]: wrong }).replaceAll('"', '');
    expect(message).toContain(`${name}: ${seen} is not allowed; expected ${allowed}`);
  },
);

it('takes only digits as a number', () => {
  for (const text of ['abc', ' 2', '1e1', '-1', '+1', '2.5', '0x2', '٢']) {
    for (const name of ['CLUSTER_WORKERS', 'CLUSTER_SHUTDOWN_LAME_DUCK_MS']) {
      expect(refusal({ [name]: text })).toContain(`${name}: ${JSON.stringify(text)} `);
    }
  }
});

describe('a variable', () => {
  it('wins over its option, and leaves the others', () => {
    const token = 'x'.repeat(16);
    const options = {
      workers: 8,
      balancing: 'round-robin',
      log: { format: 'text', level: 'warn' },
      shutdown: { lameDuckMs: 1, drainTimeoutMs: 2, killTimeoutMs: 3 },
      memory: { softLimitBytes: 2 ** 24, hardLimitBytes: 2 ** 30, profile: false },
      admin: { port: 1, host: '127.0.0.2', token: 'y'.repeat(16) },
    } as const satisfies ClusterOptions;
    expect(resolve({ CLUSTER_WORKERS: 'auto' }, options).workers).toBe(4);
    expect(resolve({ CLUSTER_BALANCING: 'shared' }, options).balancing).toBe('shared');
    const { log, shutdown, memory, admin } = resolve(
      {
        CLUSTER_LOG_FORMAT: 'json',
        CLUSTER_SHUTDOWN_DRAIN_TIMEOUT_MS: '7',
        CLUSTER_MEMORY_SOFT_LIMIT_BYTES: `${2 ** 25}`,
        CLUSTER_ADMIN_PORT: '2',
        CLUSTER_ADMIN_TOKEN: token,
      },
      options,
    );
    expect(log).toMatchObject({ format: 'json', level: 'warn' });
    expect(shutdown).toEqual({ ...options.shutdown, drainTimeoutMs: 7 });
    expect(memory).toEqual({ ...options.memory, softLimitBytes: 2 ** 25 });
    expect(admin).toEqual({ port: 2, host: '127.0.0.2' });
    expect(admin?.token).toBe(token);
  });

  it('is named together with the others that are wrong', () => {
    const message = refusal({ CLUSTER_WORKERS: 'two', CLUSTER_BALANCING: 'fair' });
    expect(message).toMatch(/^invalid environment: .*CLUSTER_WORKERS: "two".*CLUSTER_BALANCING: /);
  });
});

it('CLUSTER_ADMIN_PORT opens the admin listener, and CLUSTER_ADMIN_HOST alone does not', () => {
  expect(resolve({ CLUSTER_ADMIN_PORT: '9464' }).admin).toEqual({ port: 9464, host: '127.0.0.1' });
  expect(resolve({ CLUSTER_ADMIN_PORT: '9464' }, { expose: 'admin' }).expose).toBe('admin');
  expect(resolve({ CLUSTER_ADMIN_HOST: '::1' }).admin).toBeUndefined();
});

it('WEB_CONCURRENCY stands in for CLUSTER_WORKERS, and is not checked beside it', () => {
  expect(resolve({ CLUSTER_WORKERS: '', WEB_CONCURRENCY: '9' }).workers).toBe(9);
  expect(resolve({ CLUSTER_WORKERS: '0', WEB_CONCURRENCY: '9' }).workers).toBe(0);
  expect(resolve({ CLUSTER_WORKERS: '2', WEB_CONCURRENCY: 'abc' }).workers).toBe(2);
});
