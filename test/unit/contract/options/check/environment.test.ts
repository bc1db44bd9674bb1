import { describe, expect, it } from 'vitest';
import { ClusterConfigurationError } from '../../../../../src/contract/errors/index.js';
import { readEnvironment } from '../../../../../src/contract/options/check/environment.js';
import { type ClusterOptions, resolveOptions } from '../../../../../src/contract/options/index.js';

function resolve(env: NodeJS.ProcessEnv, options: ClusterOptions = {}) {
  return resolveOptions(options, env, () => 4);
}

function refusal(env: NodeJS.ProcessEnv): string {
  try {
    resolve(env);
  } catch (error) {
    expect(error).toBeInstanceOf(ClusterConfigurationError);
    expect(error).toMatchObject({ code: 'CLUSTER_CONFIGURATION', exitCode: 78 });
    return (error as Error).message;
  }
  throw new Error('the environment was accepted');
}

const NOT_WORKERS = [
  'abc',
  ' ',
  ' 2',
  '2 ',
  '1e1',
  '-1',
  '+1',
  '2.5',
  '2,5',
  '0x2',
  'Auto',
  'NaN',
  'Infinity',
  '257',
  '300',
  '1000',
  '٢',
];

describe.each(['CLUSTER_WORKERS', 'WEB_CONCURRENCY'])('%s', (name) => {
  it.each([
    ['0', 0],
    ['1', 1],
    ['12', 12],
    ['256', 256],
    ['auto', 4],
  ])('may be %j', (text, workers) => {
    expect(resolve({ [name]: text }).workers).toBe(workers);
  });

  it('wins over the option', () => {
    expect(resolve({ [name]: '3' }, { workers: 8 }).workers).toBe(3);
    expect(resolve({ [name]: '0' }, { workers: 8 }).workers).toBe(0);
    expect(resolve({ [name]: 'auto' }, { workers: 8 }).workers).toBe(4);
  });

  it('counts as not set where it is empty', () => {
    expect(resolve({ [name]: '' }, { workers: 8 }).workers).toBe(8);
    expect(resolve({ [name]: '' }).workers).toBe(4);
  });

  it.each(NOT_WORKERS)('is refused as %j with its name and what is allowed', (text) => {
    const message = refusal({ [name]: text });
    expect(message.replaceAll('"', '')).toContain(`${name}: ${text} is not allowed`);
    expect(message).toContain("'auto' or a whole number from 0 to 256");
  });
});

describe('WEB_CONCURRENCY', () => {
  it('gives way to CLUSTER_WORKERS', () => {
    expect(resolve({ CLUSTER_WORKERS: '2', WEB_CONCURRENCY: '9' }).workers).toBe(2);
    expect(resolve({ CLUSTER_WORKERS: '0', WEB_CONCURRENCY: '9' }).workers).toBe(0);
  });

  it('stands in where CLUSTER_WORKERS is empty', () => {
    expect(resolve({ CLUSTER_WORKERS: '', WEB_CONCURRENCY: '9' }).workers).toBe(9);
  });

  it('cannot be wrong where it is not used', () => {
    expect(resolve({ CLUSTER_WORKERS: '2', WEB_CONCURRENCY: 'abc' }).workers).toBe(2);
  });
});

describe('CLUSTER_BALANCING', () => {
  it.each(['shared', 'reuse-port', 'round-robin', 'ports'] as const)('may be %s', (balancing) => {
    // No worker: then no strategy is in conflict with the Node that runs this.
    expect(resolve({ CLUSTER_BALANCING: balancing, CLUSTER_WORKERS: '0' }).balancing).toBe(
      balancing,
    );
  });

  it('wins over the option', () => {
    expect(resolve({ CLUSTER_BALANCING: 'ports' }, { balancing: 'round-robin' }).balancing).toBe(
      'ports',
    );
  });

  it('counts as not set where it is empty', () => {
    expect(resolve({ CLUSTER_BALANCING: '' }).balancing).toBe('shared');
  });

  it.each(['fair', 'SHARED', ' shared'])('is refused as %j', (text) => {
    const message = refusal({ CLUSTER_BALANCING: text });
    expect(message).toContain(`CLUSTER_BALANCING: "${text}" `);
    expect(message).toContain("'shared', 'reuse-port', 'round-robin', 'ports'");
  });
});

describe('CLUSTER_LOG_FORMAT', () => {
  it.each(['text', 'json', 'pino', 'nest'] as const)('may be %s', (format) => {
    expect(resolve({ CLUSTER_LOG_FORMAT: format }).log.format).toBe(format);
  });

  it('is text where it is empty or not set', () => {
    expect(resolve({ CLUSTER_LOG_FORMAT: '' }).log.format).toBe('text');
    expect(resolve({}).log.format).toBe('text');
  });

  it('wins over the option, and leaves the others', () => {
    const log = { format: 'nest', level: 'warn', write: () => {} } as const;
    expect(resolve({ CLUSTER_LOG_FORMAT: 'pino' }, { log }).log).toEqual({
      ...log,
      format: 'pino',
    });
  });

  it.each(['xml', 'JSON'])('is refused as %j', (text) => {
    const message = refusal({ CLUSTER_LOG_FORMAT: text });
    expect(message).toContain(`CLUSTER_LOG_FORMAT: "${text}" `);
    expect(message).toContain("'text', 'json', 'pino', 'nest'");
  });
});

describe('CLUSTER_LOG_LEVEL', () => {
  it.each(['info', 'warn', 'error', 'silent'] as const)('may be %s', (level) => {
    expect(resolve({ CLUSTER_LOG_LEVEL: level }).log.level).toBe(level);
  });

  it('wins over the option, unless it is empty', () => {
    const options = { log: { level: 'silent' } } as const;
    expect(resolve({ CLUSTER_LOG_LEVEL: 'info' }, options).log.level).toBe('info');
    expect(resolve({ CLUSTER_LOG_LEVEL: '' }, options).log.level).toBe('silent');
  });

  it.each(['debug', 'WARN', '30'])('is refused as %j', (text) => {
    const message = refusal({ CLUSTER_LOG_LEVEL: text });
    expect(message).toContain(`CLUSTER_LOG_LEVEL: "${text}" `);
    expect(message).toContain("'info', 'warn', 'error', 'silent'");
  });
});

describe('CLUSTER_BOOT_LOGS', () => {
  it.each(['first', 'all', 'none'] as const)('may be %s', (bootLogs) => {
    expect(resolve({ CLUSTER_BOOT_LOGS: bootLogs }).bootLogs).toBe(bootLogs);
  });

  it('is first where it is empty or not set', () => {
    expect(resolve({ CLUSTER_BOOT_LOGS: '' }).bootLogs).toBe('first');
    expect(resolve({}).bootLogs).toBe('first');
  });

  it.each(['one', 'All'])('is refused as %j', (text) => {
    const message = refusal({ CLUSTER_BOOT_LOGS: text });
    expect(message).toContain(`CLUSTER_BOOT_LOGS: "${text}" `);
    expect(message).toContain("'first', 'all', 'none'");
  });
});

describe('CLUSTER_OFFLOAD', () => {
  it.each(['threads', 'inline'] as const)('may be %s', (mode) => {
    expect(readEnvironment({ CLUSTER_OFFLOAD: mode }).offload).toBe(mode);
    expect(resolve({ CLUSTER_OFFLOAD: mode }).workers).toBe(4);
  });

  it('counts as not set where it is empty', () => {
    expect(readEnvironment({ CLUSTER_OFFLOAD: '' }).offload).toBeUndefined();
    expect(readEnvironment({}).offload).toBeUndefined();
  });

  it.each(['thread', 'INLINE', ' inline', 'true', '0'])('is refused as %j', (text) => {
    const message = refusal({ CLUSTER_OFFLOAD: text });
    expect(message).toContain(`CLUSTER_OFFLOAD: "${text}" `);
    expect(message).toContain("'threads', 'inline'");
  });
});

describe('CLUSTER_THREADS', () => {
  it.each([
    ['1', 1],
    ['12', 12],
    ['256', 256],
    ['auto', 'auto'],
  ])('may be %j', (text, threads) => {
    expect(readEnvironment({ CLUSTER_THREADS: text }).threads).toBe(threads);
  });

  it('counts as not set where it is empty', () => {
    expect(readEnvironment({ CLUSTER_THREADS: '' }).threads).toBeUndefined();
  });

  it.each(['0', ...NOT_WORKERS])('is refused as %j with its name and what is allowed', (text) => {
    const message = refusal({ CLUSTER_THREADS: text });
    expect(message).toContain('CLUSTER_THREADS: ');
    expect(message).toContain("'auto' or a whole number from 1 to 256");
  });
});

const MOST_MS = 2 ** 31 - 1;

describe.each([
  ['CLUSTER_SHUTDOWN_LAME_DUCK_MS', 'lameDuckMs'],
  ['CLUSTER_SHUTDOWN_DRAIN_TIMEOUT_MS', 'drainTimeoutMs'],
  ['CLUSTER_SHUTDOWN_KILL_TIMEOUT_MS', 'killTimeoutMs'],
] as const)('%s', (name, key) => {
  const shutdown = { lameDuckMs: 1, drainTimeoutMs: 2, killTimeoutMs: 3 };

  it.each([0, 7, 10_000, MOST_MS])(
    'may be %d, wins over the option, and leaves the others',
    (ms) => {
      expect(resolve({ [name]: String(ms) }, { shutdown }).shutdown).toEqual({
        ...shutdown,
        [key]: ms,
      });
      expect(resolve({ [name]: String(ms) }).shutdown[key]).toBe(ms);
    },
  );

  it('counts as not set where it is empty', () => {
    expect(resolve({ [name]: '' }, { shutdown }).shutdown).toEqual(shutdown);
  });

  it.each(['10s', '1e3', '-1', '1.5', ' 5', 'auto', 'Infinity', String(MOST_MS + 1)])(
    'is refused as %j with its name and what is allowed',
    (text) => {
      const message = refusal({ [name]: text }).replaceAll('"', '');
      expect(message).toBe(
        `invalid environment: ${name}: ${text} is not allowed; expected a number of milliseconds from 0 to ${MOST_MS}`,
      );
    },
  );
});

describe.each([
  ['CLUSTER_MEMORY_SOFT_LIMIT_BYTES', 'softLimitBytes', 'hardLimitBytes'],
  ['CLUSTER_MEMORY_HARD_LIMIT_BYTES', 'hardLimitBytes', 'softLimitBytes'],
] as const)('%s', (name, key, other) => {
  it('sets the limit, and wins over the option', () => {
    const bytes = 500_000_000;
    expect(resolve({ [name]: `${bytes}` }).memory).toEqual({ [key]: bytes, [other]: Infinity });
    expect(resolve({ [name]: `${bytes}` }, { memory: { [key]: 400_000_000 } }).memory[key]).toBe(
      bytes,
    );
    expect(resolve({ [name]: '' }, { memory: { [key]: bytes } }).memory[key]).toBe(bytes);
  });

  it.each(['512Mi', '512', '-1', '1e9'])('is refused as %j', (text) => {
    const message = refusal({ [name]: text }).replaceAll('"', '');
    expect(message).toContain(`${name}: ${text} is not allowed; expected a whole number from`);
  });
});

it('refuses variables that conflict with an option, as it refuses the options', () => {
  expect(() =>
    resolve(
      { CLUSTER_MEMORY_SOFT_LIMIT_BYTES: '500000000' },
      { memory: { hardLimitBytes: 400_000_000 } },
    ),
  ).toThrow('memory.softLimitBytes (500000000) must be below memory.hardLimitBytes (400000000)');
  expect(refusal({ CLUSTER_ADMIN_PORT: '3000' })).toContain(
    'admin.port (3000) is a port of the app',
  );
});

describe('CLUSTER_ADMIN_PORT and CLUSTER_ADMIN_HOST', () => {
  const token = 'x'.repeat(16);

  it('open the admin listener without an option', () => {
    expect(resolve({ CLUSTER_ADMIN_PORT: '9464' }).admin).toEqual({
      port: 9464,
      host: '127.0.0.1',
    });
    expect(resolve({ CLUSTER_ADMIN_PORT: '9464' }, { expose: 'admin' }).expose).toBe('admin');
    expect(resolve({ CLUSTER_ADMIN_HOST: '::1' }).admin).toBeUndefined();
  });

  it('win over the options, unless they are empty', () => {
    const admin = { port: 1, host: '127.0.0.2', token };
    const of = (env: NodeJS.ProcessEnv) => resolve(env, { admin }).admin;
    expect(of({ CLUSTER_ADMIN_PORT: '2' })).toEqual({ port: 2, host: '127.0.0.2' });
    expect(of({ CLUSTER_ADMIN_HOST: '::1' })).toEqual({ port: 1, host: '::1' });
    expect(of({ CLUSTER_ADMIN_PORT: '', CLUSTER_ADMIN_HOST: '' })).toEqual({
      port: 1,
      host: '127.0.0.2',
    });
    expect(of({ CLUSTER_ADMIN_PORT: '2' })?.token).toBe(token);
  });

  it('need a token where other machines reach the listener', () => {
    const env = { CLUSTER_ADMIN_PORT: '9464', CLUSTER_ADMIN_HOST: '0.0.0.0' };
    expect(refusal(env)).toContain('admin.host ("0.0.0.0") can be reached from other machines');
    expect(resolve({ ...env, CLUSTER_ADMIN_TOKEN: token }).admin?.token).toBe(token);
  });

  it.each(['auto', '-1', '65536', '1e3', ' 1'])('are refused as the port %j', (text) => {
    expect(refusal({ CLUSTER_ADMIN_PORT: text })).toContain(`CLUSTER_ADMIN_PORT: "${text}" `);
  });

  it('are refused as a host that is a name', () => {
    expect(refusal({ CLUSTER_ADMIN_HOST: 'pod' })).toContain('CLUSTER_ADMIN_HOST: "pod" ');
  });
});

describe('the environment', () => {
  it('has all its problems named in one message', () => {
    const message = refusal({
      CLUSTER_WORKERS: 'two',
      CLUSTER_BALANCING: 'fair',
      CLUSTER_LOG_FORMAT: 'xml',
    });
    for (const problem of [
      'CLUSTER_WORKERS: "two"',
      'CLUSTER_BALANCING: "fair"',
      'CLUSTER_LOG_FORMAT: "xml"',
    ]) {
      expect(message).toContain(problem);
    }
    expect(message).toContain('environment');
  });

  it('may hold whatever else it likes', () => {
    expect(resolve({ PATH: '/bin', CLUSTER_OTHER: 'x' }).workers).toBe(4);
  });
});
