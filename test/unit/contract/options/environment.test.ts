import { describe, expect, it } from 'vitest';
import { type ClusterOptions, clusterOptions, resolveOptions } from '../../../../src/contract/options/index.js';
import { offloadVariables } from '../../../../src/contract/options/offload-variables.js';
import { readVariables } from '../../../../src/contract/options/schema.js';
import { at, refusal as refusalOf } from '../../support/refusal.js';

const resolve = (env: NodeJS.ProcessEnv, options: ClusterOptions = {}) =>
  resolveOptions(options, env, () => 4);

const read = (env: NodeJS.ProcessEnv) => ({
  ...readVariables(clusterOptions, env),
  offload: readVariables(offloadVariables, env),
});

const refusal = (env: NodeJS.ProcessEnv) => refusalOf(() => resolve(env));

const WORKERS = "'auto' or a whole number from 0 to 256";
const THREADS = "'auto' or a whole number from 1 to 256";
const MS = 'a number of milliseconds from 0 to 2147483647';
const BYTES = 'a whole number from 16777216 to 9007199254740991';
const NO_NUMBERS = ['abc', ' ', ' 2', '2 ', '1e1', '-1', '+1', '2.5', '0x2', 'NaN', '٢'];

interface Variable {
  readonly name: string;
  /** The path of the value among the options. */
  readonly key: string;
  /** Texts that are accepted, with their values. */
  readonly accepted: readonly (readonly [text: string, value: unknown])[];
  readonly refused: readonly string[];
  readonly allowed: string;
}

const words = (...all: string[]) => all.map((word) => [word, word] as const);
const numbers = (...all: number[]) => all.map((number) => [`${number}`, number] as const);

const VARIABLES: readonly Variable[] = [
  ...['CLUSTER_WORKERS', 'WEB_CONCURRENCY'].map((name) => ({
    name,
    key: 'workers',
    accepted: [...numbers(0, 1, 256), ['auto', 'auto'] as const],
    refused: [...NO_NUMBERS, 'Auto', '257'],
    allowed: WORKERS,
  })),
  {
    name: 'CLUSTER_BALANCING',
    key: 'balancing',
    accepted: words('shared', 'reuse-port', 'round-robin', 'ports'),
    refused: ['fair', 'SHARED', ' shared'],
    allowed: "one of 'shared', 'reuse-port', 'round-robin', 'ports'",
  },
  {
    name: 'CLUSTER_LOG_FORMAT',
    key: 'log.format',
    accepted: words('text', 'json'),
    refused: ['xml', 'JSON'],
    allowed: "one of 'text', 'json'",
  },
  {
    name: 'CLUSTER_LOG_LEVEL',
    key: 'log.level',
    accepted: words('debug', 'info', 'warn', 'error', 'silent'),
    refused: ['WARN', '30'],
    allowed: "one of 'debug', 'info', 'warn', 'error', 'silent'",
  },
  {
    name: 'CLUSTER_OFFLOAD',
    key: 'offload.mode',
    accepted: words('threads', 'inline'),
    refused: ['thread', 'INLINE', 'true', '0'],
    allowed: "one of 'threads', 'inline'",
  },
  {
    name: 'CLUSTER_THREADS',
    key: 'offload.threads',
    accepted: [...numbers(1, 256), ['auto', 'auto']],
    refused: [...NO_NUMBERS, '0', '257'],
    allowed: THREADS,
  },
  ...['lameDuck', 'drainTimeout', 'killTimeout'].map((option) => ({
    name: `CLUSTER_SHUTDOWN_${option.replace(/[A-Z]/, '_$&').toUpperCase()}_MS`,
    key: `shutdown.${option}Ms`,
    accepted: numbers(0, 10_000, 2 ** 31 - 1),
    refused: ['10s', '1e3', '-1', '1.5', ' 5', 'auto', 'Infinity', `${2 ** 31}`],
    allowed: MS,
  })),
  ...['soft', 'hard'].map((limit) => ({
    name: `CLUSTER_MEMORY_${limit.toUpperCase()}_LIMIT_BYTES`,
    key: `memory.${limit}LimitBytes`,
    accepted: numbers(2 ** 24, 500_000_000),
    refused: ['512Mi', '512', '-1', '1e9'],
    allowed: BYTES,
  })),
  {
    name: 'CLUSTER_ADMIN_PORT',
    key: 'admin.port',
    accepted: numbers(0, 9464, 65_535),
    refused: ['auto', '-1', '65536', '1e3', ' 1'],
    allowed: 'a whole number from 0 to 65535',
  },
  {
    name: 'CLUSTER_ADMIN_HOST',
    key: 'admin.host',
    accepted: words('::1', '0.0.0.0', 'localhost'),
    refused: ['pod', ' ::1'],
    allowed: 'an address',
  },
  {
    name: 'CLUSTER_ADMIN_TOKEN',
    key: 'admin.token',
    accepted: words('x'.repeat(16), 'x'.repeat(512)),
    refused: ['short', `${'x'.repeat(16)} y`],
    allowed: '16 to 512 characters of ASCII without spaces',
  },
];

describe.each(VARIABLES)('$name', ({ name, key, accepted, refused, allowed }) => {
  it('is read', () => {
    for (const [text, value] of accepted) {
      expect(at(read({ [name]: text }), key)).toBe(value);
    }
  });

  it('counts as not set where it is empty', () => {
    expect(read({ [name]: '' })).toEqual({ offload: {} });
  });

  it('is refused with its name and what is allowed', () => {
    for (const text of refused) {
      const message = refusal({ [name]: text });
      const seen = name.endsWith('TOKEN') ? 'its value' : text;
      expect(message.replaceAll('"', '')).toContain(`${name}: ${seen} is not allowed`);
      expect(message).toContain(`expected ${allowed}`);
    }
  });
});

describe('a variable', () => {
  it('wins over its option, and leaves the others', () => {
    const token = 'x'.repeat(16);
    const options = {
      workers: 8,
      balancing: 'round-robin',
      log: { format: 'text', level: 'warn' },
      shutdown: { lameDuckMs: 1, drainTimeoutMs: 2, killTimeoutMs: 3 },
      memory: { softLimitBytes: 2 ** 24, hardLimitBytes: 2 ** 30 },
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

  it('that nobody knows may be there', () => {
    expect(resolve({ PATH: '/bin', CLUSTER_OTHER: 'x' }).workers).toBe(4);
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
