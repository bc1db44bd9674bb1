import { describe, expect, it } from 'vitest';
import { ClusterConfigurationError } from '../../../../src/contract/errors/index.js';
import {
  checkEventName,
  checkWorkerCount,
  type ClusterOptions,
  logFormatIn,
  resolveOptions,
} from '../../../../src/contract/options/index.js';

const DEFAULTS = resolveOptions({}, {}, () => 4);
const MAX_TIMER_MS = 2_147_483_647;
const MIN_MEMORY_BYTES = 16 * 1024 * 1024;
const MEMORY_BYTES = 'a whole number from 16777216 to 9007199254740991';
const MS = (min: number) => `a number of milliseconds from ${min} to 2147483647`;

function resolve(options: unknown, autoWorkers = () => 4) {
  return resolveOptions(options as ClusterOptions, {}, autoWorkers);
}

/** The message that `options` are refused with. */
function refusal(options: unknown): string {
  try {
    resolve(options);
  } catch (error) {
    expect(error).toBeInstanceOf(ClusterConfigurationError);
    return (error as Error).message;
  }
  throw new Error('the options were accepted');
}

/** `nested('a.b', 1)` is `{ a: { b: 1 } }`. */
function nested(key: string, value: unknown): Record<string, unknown> {
  const [first, ...rest] = key.split('.');
  return { [first!]: rest.length === 0 ? value : nested(rest.join('.'), value) };
}

function at(object: unknown, key: string): unknown {
  return key.split('.').reduce((value, name) => (value as Record<string, unknown>)[name], object);
}

interface NumberOption {
  readonly key: string;
  /** The path of the value in the resolved options. Default: `key`. */
  readonly resolvedAt?: string;
  readonly byDefault: number;
  readonly min: number;
  readonly max: number;
  readonly whole?: boolean;
  readonly allowed: string;
  /** Whether a number as text is allowed. */
  readonly asText?: boolean;
  /** Options to set as well, so that the bounds do not conflict with other defaults. */
  readonly beside?: ClusterOptions;
  /** Options that have the key's group, if it is not there by default. */
  readonly within?: ClusterOptions;
}

const NUMBERS: readonly NumberOption[] = [
  {
    key: 'port',
    resolvedAt: 'address.port',
    byDefault: 3000,
    min: 0,
    max: 65_535,
    whole: true,
    allowed: 'a whole number from 0 to 65535',
    asText: true,
  },
  {
    key: 'workers',
    byDefault: 4,
    min: 0,
    max: 256,
    whole: true,
    allowed: "'auto' or a whole number from 0 to 256",
  },
  { key: 'readyTimeoutMs', byDefault: 30_000, min: 1, max: MAX_TIMER_MS, allowed: MS(1) },
  {
    key: 'restart.backoffMs',
    byDefault: 100,
    min: 0,
    max: MAX_TIMER_MS,
    allowed: MS(0),
    beside: { restart: { maxBackoffMs: MAX_TIMER_MS } },
  },
  {
    key: 'restart.maxBackoffMs',
    byDefault: 15_000,
    min: 0,
    max: MAX_TIMER_MS,
    allowed: MS(0),
    beside: { restart: { backoffMs: 0 } },
  },
  { key: 'restart.stableAfterMs', byDefault: 30_000, min: 0, max: MAX_TIMER_MS, allowed: MS(0) },
  {
    key: 'restart.maxFailures',
    byDefault: 5,
    min: 1,
    max: 1_000,
    whole: true,
    allowed: 'a whole number from 1 to 1000',
  },
  {
    key: 'heartbeat.intervalMs',
    byDefault: 1_000,
    min: 10,
    max: MAX_TIMER_MS - 1,
    allowed: MS(10),
    beside: { heartbeat: { timeoutMs: MAX_TIMER_MS } },
  },
  {
    key: 'heartbeat.timeoutMs',
    byDefault: 10_000,
    min: 100,
    max: MAX_TIMER_MS,
    allowed: MS(100),
    beside: { heartbeat: { intervalMs: 10 } },
  },
  {
    key: 'memory.softLimitBytes',
    byDefault: Infinity,
    min: MIN_MEMORY_BYTES,
    max: Number.MAX_SAFE_INTEGER,
    whole: true,
    allowed: MEMORY_BYTES,
  },
  {
    key: 'memory.hardLimitBytes',
    byDefault: Infinity,
    min: MIN_MEMORY_BYTES,
    max: Number.MAX_SAFE_INTEGER,
    whole: true,
    allowed: MEMORY_BYTES,
  },
  {
    key: 'recycle.maxRequests',
    byDefault: Infinity,
    min: 1,
    max: Number.MAX_SAFE_INTEGER,
    whole: true,
    allowed: 'a whole number from 1 to 9007199254740991',
  },
  {
    key: 'recycle.maxAgeMs',
    byDefault: Infinity,
    min: 1,
    max: MAX_TIMER_MS,
    allowed: MS(1),
  },
  { key: 'reload.canaryMs', byDefault: 1_000, min: 0, max: MAX_TIMER_MS, allowed: MS(0) },
  { key: 'reload.observeMs', byDefault: 30_000, min: 0, max: MAX_TIMER_MS, allowed: MS(0) },
  { key: 'shutdown.lameDuckMs', byDefault: 0, min: 0, max: MAX_TIMER_MS, allowed: MS(0) },
  { key: 'shutdown.drainTimeoutMs', byDefault: 10_000, min: 0, max: MAX_TIMER_MS, allowed: MS(0) },
  { key: 'shutdown.killTimeoutMs', byDefault: 2_000, min: 0, max: MAX_TIMER_MS, allowed: MS(0) },
];

/** Options with `value` at `key`, and the other options that this needs. */
function optionsWith({ key, beside = {} }: NumberOption, value: unknown): unknown {
  const [group, name] = key.split('.') as [keyof ClusterOptions, string?];
  return name === undefined
    ? { ...beside, [group]: value }
    : { ...beside, [group]: { ...(beside[group] as object), [name]: value } };
}

describe.each(NUMBERS)('$key', (option) => {
  const { key, resolvedAt = key, byDefault, min, max, whole = false, allowed } = option;
  const { asText = false } = option;

  it(`is ${byDefault} by default`, () => {
    expect(at(resolve(option.within ?? {}), resolvedAt)).toBe(byDefault);
  });

  it('takes its default where it is undefined', () => {
    expect(at(resolve(nested(key, undefined)), resolvedAt)).toBe(byDefault);
  });

  it.each([min, max, ...(whole ? [] : [min + (max - min) / 4])])('may be %d', (value) => {
    expect(at(resolve(optionsWith(option, value)), resolvedAt)).toBe(value);
  });

  it.each([
    ...(asText ? [] : [['"2"', '2'] as const]),
    ['""', ''],
    ['NaN', NaN],
    ['Infinity', Infinity],
    ['-Infinity', -Infinity],
    ['null', null],
    ['true', true],
    ['an array', [1]],
    [String(min - 1), min - 1],
    [String(Math.floor(max) + 2), Math.floor(max) + 2],
    ...(whole ? [[String(min + 1.5), min + 1.5] as const] : []),
  ] as const)('is refused as %s with what is allowed', (shown, value) => {
    const message = refusal(optionsWith(option, value));

    expect(message).toContain(`${key}: ${shown} `);
    expect(message).toContain(allowed);
  });
});

/** What is text and no port. */
const NO_PORTS = [
  [
    '',
    ' ',
    '3000abc',
    'abc3000',
    ' 3000',
    '3000 ',
    '0x10',
    '1e3',
    '+3000',
    '-1',
    '3000.0',
    '3,000',
  ],
  ['03000', '00', '65536', '99999', '300000', 'NaN', 'Infinity', '٣', 'tcp://10.0.0.1:3000'],
].flat();

describe('a port as text', () => {
  it.each([
    ['0', 0],
    ['80', 80],
    ['65535', 65_535],
  ])('may be %j', (text, port) => {
    expect(resolve({ port: text }).address).toMatchObject({ port });
    expect(resolve({ port: text }).addressGiven).toBe(true);
    expect(resolve({ admin: { port: text } }).admin?.port).toBe(port);
  });

  it.each(NO_PORTS)('is refused as %j', (text) => {
    const refused = `port: ${JSON.stringify(text)} is not allowed; expected a whole number from 0 to 65535`;
    expect(refusal({ port: text })).toBe(`invalid options: ${refused}`);
    expect(refusal({ admin: { port: text } })).toBe(`invalid options: admin.${refused}`);
  });
});

describe('the variable PORT', () => {
  const resolveIn = (PORT: string, options: ClusterOptions = {}) =>
    resolveOptions(options, { PORT }, () => 4);

  it.each([
    ['8080', {}, 8_080],
    ['0', {}, 0],
    ['8080', { host: '127.0.0.1' }, 8_080],
    ['8080', { port: undefined }, 8_080],
    ['8080', { port: 5_000 }, 5_000],
    ['8080', { port: '5000' }, 5_000],
    ['', {}, 3_000],
  ])('of %j with the options %j makes the port %d', (text, options, port) => {
    expect(resolveIn(text, options).address).toMatchObject({ port });
  });

  it('is no address that was given: an app without an HTTP server binds nothing', () => {
    expect(resolveIn('8080').addressGiven).toBe(false);
    expect(resolveIn('8080', { host: '127.0.0.1' }).addressGiven).toBe(true);
  });

  it.each(NO_PORTS.filter((text) => text !== ''))('is refused as %j, by its name', (text) => {
    expect(() => resolveIn(text)).toThrow(
      `invalid environment: PORT: ${JSON.stringify(text)} is not allowed; expected a whole number from 0 to 65535`,
    );
  });

  it.each([{ port: 5_000 }, { path: '/a.sock' }])('is not looked at for %j', (options) => {
    expect(() => resolveIn('junk', options)).not.toThrow();
  });
});

describe('port 0', () => {
  const refusalIn = (env: NodeJS.ProcessEnv, options: ClusterOptions): string | undefined => {
    try {
      resolveOptions(options, env, () => 4);
    } catch (error) {
      expect(error).toBeInstanceOf(ClusterConfigurationError);
      return (error as Error).message;
    }
    return undefined;
  };

  it.each(['', ' '])('is refused where it is the Number() of a PORT of %j', (PORT) => {
    expect(refusalIn({ PORT }, { port: Number(PORT) })).toMatch(
      /^invalid options: port is 0, and the variable PORT is set but empty.*port: '0', as text/,
    );
  });

  it.each<[key: string, ClusterOptions]>([
    ['port', { port: 0 }],
    ['admin.port', { admin: { port: 0 } }],
  ])('as %s is refused in production, with what to write instead', (key, options) => {
    const message = refusalIn({ NODE_ENV: 'production' }, options);
    expect(message).toContain(`invalid options: ${key} is 0 in production (NODE_ENV)`);
    expect(message).toContain(`write ${key}: '0', as text`);
  });

  it.each<[NodeJS.ProcessEnv, ClusterOptions]>([
    [{}, { port: 0 }],
    [{ NODE_ENV: 'test' }, { port: 0, admin: { port: 0 } }],
    [{ PORT: '3000' }, { port: 0 }],
    [{ PORT: '0' }, {}],
    [{ PORT: '' }, {}],
    [
      { PORT: '', NODE_ENV: 'production' },
      { port: '0', admin: { port: '0' } },
    ],
  ])('in %j is what %j means', (env, options) => {
    expect(refusalIn(env, options)).toBeUndefined();
  });
});

describe('timers', () => {
  it.each(NUMBERS.filter(({ key }) => key.endsWith('Ms')))(
    'refuses a $key of 2 ** 31, which would fire at once',
    (option) => {
      expect(refusal(optionsWith(option, 2 ** 31))).toContain(`${option.key}: 2147483648 `);
    },
  );
});

describe('workers', () => {
  it.each([{}, { workers: 'auto' }, { workers: undefined }])(
    'are what the machine allows for %j',
    (options) => {
      expect(resolve(options, () => 7).workers).toBe(7);
    },
  );

  it('are 256 at most, however large the machine is', () => {
    expect(resolve({}, () => 1_000).workers).toBe(256);
  });

  it('are not counted on the machine where a number is given', () => {
    const autoWorkers = () => {
      throw new Error('asked');
    };
    expect(resolve({ workers: 3 }, autoWorkers).workers).toBe(3);
  });

  it('are refused as a word other than auto', () => {
    expect(refusal({ workers: 'max' })).toContain(
      `workers: "max" is not allowed; expected 'auto' or a whole number from 0 to 256`,
    );
  });
});

describe('address', () => {
  it('is port 3000 of all interfaces by default', () => {
    expect(resolve({}).address).toEqual({ kind: 'tcp', port: 3000, host: undefined });
  });

  it.each(['127.0.0.1', '::1', 'localhost'])('may be of the host %s', (host) => {
    expect(resolve({ host, port: 80 }).address).toEqual({ kind: 'tcp', port: 80, host });
  });

  it.each([['""', ''] as const, ['1', 1] as const, ['null', null] as const])(
    'refuses the host %s',
    (shown, host) => {
      const message = refusal({ host });
      expect(message).toContain(`host: ${shown} `);
      expect(message).toContain('a host name or address');
    },
  );

  it.each(['/run/app.sock', `/${'x'.repeat(106)}`, `/${'é'.repeat(53)}`])(
    'may be the unix socket %s',
    (path) => {
      expect(resolve({ path }).address).toEqual({ kind: 'unix', path });
    },
  );

  it.each(['', `/${'x'.repeat(107)}`, `/${'é'.repeat(54)}`, 5, null])(
    'refuses the unix socket path %s: the kernel holds 107 bytes',
    (path) => {
      const message = refusal({ path });
      expect(message).toMatch(/path: \S/);
      expect(message).toContain('a path of 1 to 107 bytes');
    },
  );

  it('is refused as both a path and a port', () => {
    expect(refusal({ path: '/a.sock', port: 80 })).toMatch(
      /path and port exclude each other.*"\/a\.sock".*80.*one of them/,
    );
  });

  it('is refused as both a path and port 0', () => {
    expect(refusal({ path: '/a.sock', port: 0 })).toContain('path and port');
  });

  it('is refused as both a path and a host', () => {
    expect(refusal({ path: '/a.sock', host: '::1' })).toMatch(
      /path and host exclude each other.*"\/a\.sock".*::1.*one of them/,
    );
  });

  it('is a unix socket where port and host are undefined', () => {
    expect(resolve({ path: '/a.sock', port: undefined, host: undefined }).address.kind).toBe(
      'unix',
    );
  });
});

describe('balancing', () => {
  it.each([{}, { balancing: undefined }, { balancing: 'shared' }])(
    'is shared for %j',
    (options) => {
      expect(resolve(options).balancing).toBe('shared');
    },
  );

  it.each(['shared', 'reuse-port', 'round-robin', 'ports'] as const)('may be %s', (balancing) => {
    // No worker: then no strategy is in conflict with the Node that runs this.
    expect(resolve({ balancing, workers: 0 }).balancing).toBe(balancing);
  });

  it.each([
    ['"fair"', 'fair'],
    ['"reusePort"', 'reusePort'],
    ['"SHARED"', 'SHARED'],
    ['1', 1],
    ['null', null],
  ] as const)('is refused as %s', (shown, balancing) => {
    const message = refusal({ balancing });
    expect(message).toContain(`balancing: ${shown} `);
    expect(message).toContain("'shared', 'reuse-port', 'round-robin', 'ports'");
  });
});

describe('rebalance', () => {
  it.each([
    [undefined, true],
    [true, true],
    [false, false],
  ])('for %s is %s', (rebalance, resolved) => {
    expect(resolve({ rebalance }).rebalance).toBe(resolved);
  });

  it.each([
    ['"false"', 'false'],
    ['0', 0],
    ['null', null],
    ['an object', {}],
  ] as const)('is refused as %s', (shown, rebalance) => {
    const message = refusal({ rebalance });
    expect(message).toContain(`rebalance: ${shown} `);
    expect(message).toContain('true or false');
  });
});

describe('heartbeat', () => {
  it('never judges a worker hung where it is false, and still pings for fresh figures', () => {
    expect(resolve({ heartbeat: false }).heartbeat).toEqual({
      intervalMs: 1_000,
      timeoutMs: Infinity,
    });
  });

  it.each([
    ['true', true],
    ['null', null],
    ['1000', 1_000],
    ['"off"', 'off'],
  ] as const)('is refused as %s', (shown, heartbeat) => {
    const message = refusal({ heartbeat });
    expect(message).toContain(`heartbeat: ${shown} `);
    expect(message).toMatch(/false.*intervalMs.*timeoutMs/);
  });

  it.each([
    [5_000, 5_000],
    [5_000, 4_999],
  ])('refuses an interval of %d with a timeout of %d', (intervalMs, timeoutMs) => {
    const message = refusal({ heartbeat: { intervalMs, timeoutMs } });
    expect(message).toContain(`heartbeat.timeoutMs (${timeoutMs})`);
    expect(message).toContain(`above heartbeat.intervalMs (${intervalMs})`);
  });

  it('refuses an interval above the default timeout', () => {
    expect(refusal({ heartbeat: { intervalMs: 10_000 } })).toContain('heartbeat.timeoutMs (10000)');
  });

  it('refuses a timeout below the default interval', () => {
    expect(refusal({ heartbeat: { timeoutMs: 1_000 } })).toContain('heartbeat.intervalMs (1000)');
  });

  it('accepts a timeout just above the interval', () => {
    const heartbeat = { intervalMs: 1_000, timeoutMs: 1_001 };
    expect(resolve({ heartbeat }).heartbeat).toEqual(heartbeat);
  });
});

describe('restart', () => {
  it.each([
    [{ backoffMs: 101, maxBackoffMs: 100 }, 101, 100],
    [{ backoffMs: 15_001 }, 15_001, 15_000],
    [{ maxBackoffMs: 99 }, 100, 99],
  ])('refuses %j: the first wait would be above the longest', (restart, backoff, max) => {
    const message = refusal({ restart });
    expect(message).toContain(`restart.backoffMs (${backoff})`);
    expect(message).toContain(`restart.maxBackoffMs (${max})`);
    expect(message).toMatch(/lower|raise/);
  });

  it('accepts a first wait that is the longest', () => {
    const restart = { backoffMs: 500, maxBackoffMs: 500 };
    expect(resolve({ restart }).restart).toMatchObject(restart);
  });
});

describe('control', () => {
  it('is on unless it is false, where it was told to be', () => {
    expect(resolve({ control: {} }).control).toEqual({ path: undefined });
    expect(resolve({ control: { path: '/run/shop/c.sock' } }).control?.path).toBe(
      '/run/shop/c.sock',
    );
    expect(resolve({ control: false }).control).toBeUndefined();
  });

  it.each([true, 'a.sock', { path: '' }, { path: 'x'.repeat(108) }, { socket: 'a' }])(
    'is refused as %j',
    (control) => {
      expect(refusal({ control })).toContain('control');
    },
  );
});

describe('name', () => {
  it.each(['shop', 'acme-shop', '3d.v2_x', 'x'.repeat(40)])('may be %s', (name) => {
    expect(resolve({ name }).name).toBe(name);
  });

  it.each(['', '../shop', '@acme/shop', '-x', '.x', 'a b', 'a\u001b[2J', 'x'.repeat(41), 7])(
    'is refused as %j',
    (name) => {
      expect(refusal({ name })).toContain('expected at most 40 letters, digits and . _ -');
    },
  );
});

describe('admin', () => {
  it.each([{}, { admin: undefined }])('is no listener for %j', (options) => {
    expect(resolve(options).admin).toBeUndefined();
  });

  it('is on 127.0.0.1 by default', () => {
    expect(resolve({ admin: { port: 9464 } }).admin).toEqual({ port: 9464, host: '127.0.0.1' });
    const admin = { port: 9464, host: undefined };
    expect(resolve({ admin }).admin).toEqual({ port: 9464, host: '127.0.0.1' });
  });

  it.each([0, 1, 65_535])('may have the port %d', (port) => {
    expect(resolve({ admin: { port } }).admin?.port).toBe(port);
  });

  it.each(['127.0.0.1', '127.0.0.2', '127.255.255.254', '::1', 'localhost'])(
    'may be on %s, which only this machine reaches',
    (host) => {
      expect(resolve({ admin: { port: 9464, host } }).admin?.host).toBe(host);
    },
  );

  const OTHERS = ['0.0.0.0', '::', '10.0.0.1', '192.168.1.1', '128.0.0.1', '::ffff:10.0.0.1'];

  it.each(OTHERS)('is refused on %j without a token, with what to do', (host) => {
    const message = refusal({ admin: { port: 9464, host } });
    expect(message).toContain(`admin.host ("${host}") can be reached from other machines`);
    expect(message).toContain('the variable CLUSTER_ADMIN_TOKEN, or token: false');
  });

  it.each(OTHERS)('may be on %j with a token, or explicitly without', (host) => {
    const admin = { port: 9464, host };
    const token = 'x'.repeat(16);
    expect(resolve({ admin: { ...admin, token } }).admin?.token).toBe(token);
    expect(resolve({ admin: { ...admin, token: false } }).admin?.token).toBeUndefined();
    const byVariable = resolveOptions({ admin }, { CLUSTER_ADMIN_TOKEN: token }, () => 4);
    expect(byVariable.admin?.token).toBe(token);
  });

  it('has the token of the environment before that of the code', () => {
    const env = { CLUSTER_ADMIN_TOKEN: 'x'.repeat(16) };
    for (const token of [undefined, false, 'y'.repeat(16)] as const) {
      const { admin } = resolveOptions({ admin: { port: 1, token } }, env, () => 4);
      expect(admin?.token).toBe(env.CLUSTER_ADMIN_TOKEN);
    }
  });

  it.each([
    '',
    'too-short',
    'x'.repeat(15),
    'x'.repeat(513),
    `${'x'.repeat(20)} y`,
    'é'.repeat(20),
    5,
    true,
    null,
  ])('refuses the token %j, and does not show it', (token) => {
    const message = refusal({ admin: { port: 9464, token } });
    expect(message).toBe(
      'invalid options: admin.token: its value is not allowed; expected 16 to 512 characters of ASCII without spaces, as `openssl rand -hex 32` prints them, or false where everybody may read',
    );
  });

  it('refuses a variable that is no token, and does not show it', () => {
    const env = { CLUSTER_ADMIN_TOKEN: 'short' };
    expect(() => resolveOptions({}, env, () => 4)).toThrow(
      'CLUSTER_ADMIN_TOKEN: its value is not allowed; expected 16 to 512 characters of ASCII without spaces, as `openssl rand -hex 32` prints them',
    );
  });

  it('does not show a token that is in the wrong place', () => {
    const message = refusal({
      adminToken: 'of-16-characters',
      admin: { port: 1, Token: 'of-16-too' },
    });
    expect(message).not.toContain('of-16');
  });

  it('keeps the token out of whatever shows the options', () => {
    const resolved = resolve({ admin: { port: 9464, token: 'of-16-characters' } });
    expect(JSON.stringify({ ...resolved, admin: { ...resolved.admin } })).not.toContain('of-16');
  });

  it.each([
    '127.0.0',
    '127.0.0.1.evil.example',
    'evil.example',
    'localhost.evil.example',
    'xlocalhost',
    '',
    ' 127.0.0.1',
    '127.0.0.1\n',
  ])('is refused on %j, which is no address', (host) => {
    const message = refusal({ admin: { port: 9464, host, token: false } });
    expect(message).toContain(`admin.host: ${JSON.stringify(host)} is not allowed`);
    expect(message).toContain('an address: a loopback one (127.0.0.1, ::1)');
    expect(message).toContain('(0.0.0.0 and :: are all)');
  });

  it.each([
    ['1', 1],
    ['null', null],
    ['true', true],
    ['an array', ['127.0.0.1']],
  ] as const)('is refused on the host %s', (shown, host) => {
    expect(refusal({ admin: { port: 9464, host } })).toContain(`admin.host: ${shown} `);
  });

  it.each([
    ['-1', -1],
    ['65536', 65_536],
    ['1.5', 1.5],
    ['NaN', NaN],
    ['null', null],
  ] as const)('is refused with the port %s', (shown, port) => {
    const message = refusal({ admin: { port } });
    expect(message).toContain(`admin.port: ${shown} `);
    expect(message).toContain('a whole number from 0 to 65535');
  });

  it.each([{}, { port: undefined }, { host: '::1' }])('is refused without a port: %j', (admin) => {
    expect(refusal({ admin })).toContain(
      'admin.port: undefined is not allowed; expected a whole number from 0 to 65535',
    );
  });

  it.each([
    ['9464', 9464],
    ['true', true],
    ['false', false],
    ['null', null],
    ['"127.0.0.1:9464"', '127.0.0.1:9464'],
    ['an array', [9464]],
  ] as const)('is refused as %s', (shown, admin) => {
    const message = refusal({ admin });
    expect(message).toContain(`admin: ${shown} is not allowed`);
    expect(message).toContain('port, host');
  });

  it.each(['path', 'constructor', '__proto__'])('knows no %s', (key) => {
    const admin = JSON.parse(`{ "port": 9464, "${key}": 1 }`);
    const message = refusal({ admin });
    expect(message).toContain(`admin.${key}: 1 is not allowed; no such option here`);
    expect(message).toContain('known are port, host');
  });

  it('is frozen', () => {
    expect(Object.isFrozen(resolve({ admin: { port: 9464 } }).admin)).toBe(true);
  });
});

describe('expose', () => {
  it('is the port of the app by default', () => {
    expect(resolve({}).expose).toBe('app');
    expect(resolve({ expose: 'admin', admin: { port: 9464 } }).expose).toBe('admin');
  });

  it('is refused as admin where there is no such listener', () => {
    expect(refusal({ expose: 'admin' })).toContain(
      "expose is 'admin', and there is no admin listener; give admin: { port }, or the variable CLUSTER_ADMIN_PORT",
    );
    expect(refusal({ expose: 'admin', admin: { port: 9464 }, workers: 0 })).toContain(
      "expose is 'admin', and workers: 0 has no admin listener",
    );
  });

  it('is refused as another word', () => {
    expect(refusal({ expose: 'none' })).toContain(
      "expose: \"none\" is not allowed; expected one of 'app', 'admin'",
    );
  });
});

describe('doctor', () => {
  it('warns of everything by default', () => {
    expect(resolve({}).doctor).toEqual({ warnings: true, ignore: [] });
    expect(resolve({ doctor: {} }).doctor).toEqual({ warnings: true, ignore: [] });
  });

  it('may warn of nothing, or of nothing that is known', () => {
    expect(resolve({ doctor: false }).doctor).toEqual({ warnings: false, ignore: [] });
    expect(resolve({ doctor: { ignore: ['cache', 'throttler'] } }).doctor).toEqual({
      warnings: true,
      ignore: ['cache', 'throttler'],
    });
  });

  it.each([
    ['doctor', 'true', true, 'false, or an object with ignore'],
    ['doctor.ignore', '"cache"', 'cache', 'an array of findings'],
    ['doctor.ignore.1', '"cash"', ['cache', 'cash'], "one of 'scheduled-jobs', 'throttler', "],
  ])('is refused with %s as %s', (key, shown, value, allowed) => {
    expect(refusal(nested(key.replace(/\.\d$/, ''), value))).toContain(
      `${key}: ${shown} is not allowed; expected ${allowed}`,
    );
  });
});

describe('on', () => {
  it('has listeners by the name of their event, none by default', () => {
    const listener = () => {};
    expect(resolve({}).on).toBeUndefined();
    expect(resolve({ on: { 'worker-exit': listener } }).on).toMatchObject({
      'worker-exit': listener,
    });
  });

  it.each([
    ['on', '5', 5, 'an object with starting, listening'],
    ['on.failed', '"log"', 'log', 'a function that takes the event'],
    ['on.failed', 'null', null, 'a function that takes the event'],
  ])('is refused with %s as %s', (key, shown, value, allowed) => {
    expect(refusal(nested(key, value))).toContain(
      `${key}: ${shown} is not allowed; expected ${allowed}`,
    );
  });

  it.each(['worker-exploded', 'error', 'constructor'])('knows no event %s', (name) => {
    expect(refusal({ on: { [name]: () => {} } })).toContain(
      `on.${name}: a function is not allowed; no such option here; known are starting, listening`,
    );
    expect(() => checkEventName(name)).toThrow(
      `name of an event: "${name}" is not allowed; expected one of 'starting', 'listening'`,
    );
  });

  it('knows a name where it is checked', () => {
    expect(checkEventName('worker-exit')).toBe('worker-exit');
  });
});

describe('log', () => {
  it.each(['text', 'json', 'pino', 'nest'] as const)('may have the format %s', (format) => {
    expect(resolve({ log: { format } }).log).toMatchObject({ format, level: 'info' });
  });

  it.each(['info', 'warn', 'error', 'silent'] as const)('may have the level %s', (level) => {
    expect(resolve({ log: { level } }).log).toMatchObject({ format: 'text', level });
  });

  it('may have a function to write with', () => {
    const write = () => {};
    expect(resolve({ log: { write } }).log.write).toBe(write);
  });

  it.each([
    ['log.format', '"xml"', 'xml', "one of 'text', 'json', 'pino', 'nest'"],
    ['log.format', 'null', null, "one of 'text', 'json', 'pino', 'nest'"],
    ['log.level', '"debug"', 'debug', "one of 'info', 'warn', 'error', 'silent'"],
    ['log.level', '30', 30, "one of 'info', 'warn', 'error', 'silent'"],
    ['log.write', '"app.log"', 'app.log', 'a function that takes a line and its level'],
    ['log.write', 'an object', {}, 'a function that takes a line and its level'],
    ['log.write', 'null', null, 'a function that takes a line and its level'],
  ])('is refused with %s as %s', (key, shown, value, allowed) => {
    expect(refusal(nested(key, value))).toContain(
      `${key}: ${shown} is not allowed; expected ${allowed}`,
    );
  });

  it('says what is wrong with options in the format that they name, if that is one', () => {
    expect(logFormatIn({ log: { format: 'pino', level: 'loud' } }, {})).toBe('pino');
    expect(logFormatIn({ log: { format: 'xml' } }, {})).toBe('text');
    expect(logFormatIn({ log: { format: 'pino' } }, { CLUSTER_LOG_FORMAT: 'nest' })).toBe('nest');
    expect(logFormatIn({ log: { format: 'pino' } }, { CLUSTER_LOG_FORMAT: 'xml' })).toBe('pino');
    for (const input of [undefined, null, 5, [], { log: null }, { log: 'json' }]) {
      expect(logFormatIn(input, {})).toBe('text');
    }
  });
});

const GROUPS = ['restart', 'memory', 'recycle', 'reload', 'shutdown', 'log'] as const;

describe('memory', () => {
  it.each([
    [200_000_000, 200_000_000],
    [200_000_001, 200_000_000],
  ])('refuses a soft limit of %d with a hard limit of %d', (softLimitBytes, hardLimitBytes) => {
    const message = refusal({ memory: { softLimitBytes, hardLimitBytes } });
    expect(message).toContain(`memory.softLimitBytes (${softLimitBytes})`);
    expect(message).toContain(`below memory.hardLimitBytes (${hardLimitBytes})`);
  });

  it.each([
    { softLimitBytes: 200_000_000 },
    { hardLimitBytes: 200_000_000 },
    { softLimitBytes: 199_999_999, hardLimitBytes: 200_000_000 },
  ])('accepts %j', (memory) => {
    expect(resolve({ memory }).memory).toEqual({ ...DEFAULTS.memory, ...memory });
  });
});

describe('watchdog', () => {
  it.each([
    [undefined, true],
    [true, true],
    [false, false],
  ] as const)('for %j is %j', (watchdog, resolved) => {
    expect(resolve({ watchdog }).watchdog).toBe(resolved);
  });

  it.each([
    ['"false"', 'false'],
    ['0', 0],
    ['null', null],
    ['an object', {}],
  ] as const)('is refused as %s', (shown, watchdog) => {
    const message = refusal({ watchdog });
    expect(message).toContain(`watchdog: ${shown} `);
    expect(message).toContain('true or false');
  });
});

describe('the number of workers to scale to', () => {
  it.each([1, 2, 256])('may be %d', (workers) => {
    expect(checkWorkerCount(workers)).toBe(workers);
  });

  it.each([
    ['0', 0],
    ['-1', -1],
    ['257', 257],
    ['1.5', 1.5],
    ['NaN', NaN],
    ['Infinity', Infinity],
    ['"2"', '2'],
    ['"auto"', 'auto'],
    ['undefined', undefined],
    ['null', null],
    ['an object', {}],
  ])('is refused as %s', (shown, workers) => {
    const check = () => checkWorkerCount(workers as number);
    expect(check).toThrow(ClusterConfigurationError);
    expect(check).toThrow(`number of workers: ${shown} `);
    expect(check).toThrow('a whole number from 1 to 256');
  });
});

describe('groups', () => {
  it('keep the defaults of the keys that are not given', () => {
    expect(resolve({ restart: { maxFailures: 9 } }).restart).toEqual({
      ...DEFAULTS.restart,
      maxFailures: 9,
    });
    expect(resolve({ shutdown: { lameDuckMs: 5 } }).shutdown).toEqual({
      ...DEFAULTS.shutdown,
      lameDuckMs: 5,
    });
    expect(resolve({ heartbeat: { intervalMs: 500 } }).heartbeat).toEqual({
      intervalMs: 500,
      timeoutMs: 10_000,
    });
  });

  it.each([...GROUPS, 'heartbeat'] as const)(
    'keep every default where %s is undefined or empty',
    (group) => {
      expect(resolve({ [group]: undefined })[group]).toEqual(DEFAULTS[group]);
      expect(resolve({ [group]: {} })[group]).toEqual(DEFAULTS[group]);
    },
  );

  it.each(GROUPS)('refuses %s where it is not an object', (group) => {
    for (const [shown, value] of [
      ['null', null],
      ['5', 5],
      ['"fast"', 'fast'],
      ['false', false],
    ] as const) {
      const message = refusal({ [group]: value });
      expect(message).toContain(`${group}: ${shown} `);
      expect(message).toContain('an object');
    }
  });

  it.each([...GROUPS, 'heartbeat'])('refuses an array as %s', (group) => {
    expect(refusal({ [group]: [] })).toContain(`${group}: an array `);
  });
});

describe('unknown keys', () => {
  it('are refused with the keys that are known', () => {
    const message = refusal({ portt: 3000 });
    expect(message).toContain('portt:');
    expect(message).toMatch(/known are port, host, path, workers/);
  });

  it.each([
    ['restart', 'backof', 'backoffMs'],
    ['heartbeat', 'interval', 'intervalMs'],
    ['memory', 'limitBytes', 'softLimitBytes'],
    ['recycle', 'requests', 'maxRequests'],
    ['reload', 'canary', 'canaryMs'],
    ['log', 'levels', 'level'],
    ['shutdown', 'drainTimeout', 'drainTimeoutMs'],
  ])('are refused inside %s', (group, wrong, right) => {
    const message = refusal({ [group]: { [wrong]: 3001 } });
    expect(message).toContain(`${group}.${wrong}:`);
    expect(message).toContain(right);
  });

  it('are refused with the value seen', () => {
    expect(refusal({ portt: 3001 })).toContain('3001');
    expect(refusal({ restart: { backof: 3002 } })).toContain('3002');
  });

  it.each(['toString', 'constructor', '__proto__'])('may not be called %s either', (key) => {
    expect(refusal(JSON.parse(`{"${key}": 1}`))).toContain(`${key}:`);
  });

  it('are refused where they are undefined', () => {
    expect(refusal({ portt: undefined })).toContain('portt:');
  });

  it('are all named in one message', () => {
    const message = refusal({ portt: 1, hosts: 2 });
    expect(message).toContain('portt:');
    expect(message).toContain('hosts:');
  });
});

describe('resolveOptions', () => {
  it('names several problems in one message, each once', () => {
    const message = refusal({
      port: 'none',
      readyTimeoutMs: 0,
      restart: { maxFailures: 0 },
      shutdown: { lameDuckMs: -1 },
      extra: 1,
    });

    for (const key of [
      'port: "none"',
      'readyTimeoutMs: 0',
      'restart.maxFailures: 0',
      'shutdown.lameDuckMs: -1',
      'extra:',
    ]) {
      expect(message.split(key)).toHaveLength(2);
    }
    expect(message).not.toContain('\n');
  });

  it('refuses with a code and the exit code of a configuration error', () => {
    let thrown: unknown;
    try {
      resolve({ port: -1 });
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toMatchObject({
      name: 'ClusterConfigurationError',
      code: 'CLUSTER_CONFIGURATION',
      exitCode: 78,
    });
  });

  it.each([['null', null] as const, ['"x"', 'x'] as const, ['an array', []] as const])(
    'refuses %s as options',
    (shown, options) => {
      expect(refusal(options)).toContain(`options: ${shown} `);
    },
  );

  it('takes no options at all', () => {
    expect(resolveOptions(undefined, {}, () => 2)).toEqual({
      address: { kind: 'tcp', port: 3000, host: undefined },
      addressGiven: false,
      workers: 2,
      balancing: 'shared',
      rebalance: true,
      compileCache: true,
      expose: 'app',
      readyTimeoutMs: 30_000,
      restart: {
        backoffMs: 100,
        maxBackoffMs: 15_000,
        stableAfterMs: 30_000,
        maxFailures: 5,
      },
      heartbeat: { intervalMs: 1_000, timeoutMs: 10_000 },
      watchdog: true,
      memory: { softLimitBytes: Infinity, hardLimitBytes: Infinity },
      recycle: { maxRequests: Infinity, maxAgeMs: Infinity },
      reload: { canaryMs: 1_000, observeMs: 30_000 },
      shutdown: { lameDuckMs: 0, drainTimeoutMs: 10_000, killTimeoutMs: 2_000 },
      log: { format: 'text', level: 'info', write: undefined },
      doctor: { warnings: true, ignore: [] },
      bootLogs: 'first',
      control: { path: undefined },
    });
  });

  it.each([
    {},
    { heartbeat: false },
    { path: '/a.sock' },
    { restart: { maxFailures: 2 }, heartbeat: { intervalMs: 20 }, shutdown: { lameDuckMs: 1 } },
    { memory: { softLimitBytes: 2 ** 30 }, recycle: { maxRequests: 1 }, reload: { canaryMs: 0 } },
  ])('freezes all it gives for %j', (options) => {
    const resolved = resolve(options);
    const notFrozen = Object.entries({ resolved, ...resolved })
      .filter(([, value]) => !Object.isFrozen(value))
      .map(([key]) => key);
    expect(notFrozen).toEqual([]);
  });

  it.each([{ port: 3000 }, { port: 0 }, { host: '127.0.0.1' }, { path: '/a.sock' }])(
    'tell %j from the default address',
    (options) => expect(resolve(options).addressGiven).toBe(true),
  );

  it('changes nothing of what it is given', () => {
    const options = { restart: { maxFailures: 2 }, heartbeat: { intervalMs: 20 } };
    resolve(options);
    expect(options).toEqual({ restart: { maxFailures: 2 }, heartbeat: { intervalMs: 20 } });
    expect(Object.isFrozen(options.restart)).toBe(false);
  });
});
