import { describe, expect, it } from 'vitest';
import { checkEventName } from '../../../../src/contract/options/bootstrap.js';
import {
  checkWorkerCount,
  type ClusterOptions,
  logFormatIn,
  resolveOptions,
} from '../../../../src/contract/options/resolve.js';
import { at, nested, refusal as refusalOf } from '../../support/refusal.js';

const resolve = (options: unknown, env: NodeJS.ProcessEnv = {}, autoWorkers = () => 4) =>
  resolveOptions(options as ClusterOptions, env, autoWorkers);

const refusal = (options: unknown, env: NodeJS.ProcessEnv = {}) =>
  refusalOf(() => resolve(options, env));

const MAX_TIMER_MS = 2 ** 31 - 1;
const PATH = 'a path of 1 to 107 bytes';
const PORT = 'a whole number from 0 to 65535';
const BYTES = 'a whole number from 16777216 to 9007199254740991';
const NAME = "at most 40 letters, digits and '.', '_' or '-', starting with a letter or digit";
const TOKEN =
  '16 to 512 ASCII characters without spaces, such as the output of `openssl rand -hex 32`, or false to allow access without a token';
const ADDRESS = 'an IP address or localhost (0.0.0.0 or ::';
const MS = (min: number) => `a number of milliseconds from ${min} to ${MAX_TIMER_MS}`;
const HANG_MS = `false or ${MS(3_000)}`;
const LEVELS = "one of 'debug', 'info', 'warn', 'error', 'silent'";

it('has these defaults', () => {
  expect(resolveOptions(undefined, {}, () => 2)).toEqual({
    address: { kind: 'tcp', port: 3000, host: undefined },
    addressGiven: false,
    workers: 2,
    balancing: 'shared',
    rebalance: true,
    expose: 'app',
    keepAliveTimeoutMs: 65_000,
    readyTimeoutMs: 30_000,
    hangTimeoutMs: 10_000,
    watchdog: true,
    memory: { softLimitBytes: Infinity, hardLimitBytes: Infinity, profile: false },
    recycle: { maxRequests: Infinity, maxAgeMs: Infinity },
    reload: { observeMs: 30_000 },
    shutdown: { lameDuckMs: 0, drainTimeoutMs: 10_000, killTimeoutMs: 2_000 },
    log: { format: 'text', level: 'info', write: undefined },
    warnings: { shown: true, ignore: [] },
    control: { path: undefined },
  });
  expect(resolve({ admin: { port: 1 } }).admin).toEqual({ port: 1, host: '127.0.0.1' });
});

/** Each option with a value that is refused, and what the message says is allowed. */
it.each<[key: string, value: unknown, shown: string, allowed: string]>([
  ['port', 65_536, '65536', PORT],
  ['host', '', '""', 'a host name or address'],
  ['path', '', '""', PATH],
  ['workers', 'max', '"max"', "'auto' or a whole number from 0 to 256"],
  ['balancing', 'fair', '"fair"', "one of 'shared', 'reuse-port', 'round-robin', 'ports'"],
  ['rebalance', 'no', '"no"', 'true or false'],
  ['keepAliveTimeoutMs', 0, '0', MS(1)],
  ['readyTimeoutMs', 0, '0', MS(1)],
  ['hangTimeoutMs', 2_999, '2999', HANG_MS],
  ['hangTimeoutMs', true, 'true', HANG_MS],
  ['watchdog', {}, 'an object', 'true or false'],
  ['memory.softLimitBytes', 512, '512', BYTES],
  ['memory.hardLimitBytes', 512, '512', BYTES],
  ['recycle.maxRequests', 0, '0', 'a whole number from 1 to 9007199254740991'],
  ['recycle.maxAgeMs', 0, '0', MS(1)],
  ['reload.observeMs', -1, '-1', MS(0)],
  ['shutdown.lameDuckMs', -1, '-1', MS(0)],
  ['shutdown.drainTimeoutMs', -1, '-1', MS(0)],
  ['shutdown.killTimeoutMs', -1, '-1', MS(0)],
  ['admin', 9464, '9464', 'an object with port, host, token'],
  ['admin.port', undefined, 'undefined', PORT],
  ['admin.host', 'evil.example', '"evil.example"', ADDRESS],
  ['admin.token', 'too-short', 'its value', TOKEN],
  ['expose', 'none', '"none"', "one of 'app', 'admin'"],
  ['on', 5, '5', 'an object with starting, listening'],
  ['on.failed', 'log', '"log"', 'a function that takes the event'],
  ['control', true, 'true', 'false, or an object with path'],
  ['control.path', 'x'.repeat(108), `"${'x'.repeat(80)}"`, PATH],
  ['name', '../shop', '"../shop"', NAME],
  ['log.format', 'xml', '"xml"', "one of 'text', 'json'"],
  ['log.level', 'loud', '"loud"', LEVELS],
  ['log.write', 'app.log', '"app.log"', 'a function that takes a line and its level'],
  ['warnings', true, 'true', 'false, or an object with ignore'],
  ['warnings.ignore', 'cache', '"cache"', 'an array of finding names'],
])('refuses %s: %j', (key, value, shown, allowed) => {
  expect(refusal(nested(key, value))).toContain(
    `${key}: ${shown} is not allowed; expected ${allowed}`,
  );
});

describe('a rule', () => {
  it.each<[rule: string, key: string, accepted: readonly unknown[], refused: readonly unknown[]]>([
    ['a whole number', 'workers', [0, 1, 256], ['2', '', NaN, Infinity, null, true, [1], 1.5, 257]],
    [
      'a duration, which fits a timer',
      'readyTimeoutMs',
      [1, 2.5, MAX_TIMER_MS],
      ['2', NaN, Infinity, -Infinity, null, [1], 0, 2 ** 31],
    ],
    ['bytes', 'memory.hardLimitBytes', [2 ** 24, 2 ** 40], ['512Mi', 2 ** 24 - 1, 2 ** 24 + 0.5]],
    [
      'a name',
      'name',
      ['shop', 'acme-shop', '3d.v2_x', 'x'.repeat(40)],
      ['', '@acme/shop', '-x', '.x', 'a b', 'a\u001b[2J', 'x'.repeat(41), 7],
    ],
    [
      'a path: the kernel holds 107 bytes',
      'control.path',
      ['/run/app.sock', `/${'x'.repeat(106)}`, `/${'é'.repeat(53)}`],
      ['', `/${'x'.repeat(107)}`, `/${'é'.repeat(54)}`, 5, null],
    ],
  ])('for %s', (_, key, accepted, refused) => {
    for (const value of accepted) {
      expect(at(resolve({ port: 1, ...nested(key, value) }), key)).toBe(value);
    }
    for (const value of refused) expect(refusal(nested(key, value))).toContain(`${key}: `);
  });

  it.each(['0', '80', '65535'])('for a port as text: %j', (text) => {
    expect(resolve({ port: text })).toMatchObject({ address: { port: +text }, addressGiven: true });
    expect(resolve({ admin: { port: text } }).admin?.port).toBe(+text);
    expect(resolve({}, { PORT: text }).address).toMatchObject({ port: +text });
  });

  it.each(' ,3000abc, 3000,0x10,1e3,-1,3000.0,03000,65536,٣'.split(','))(
    'against %j as a port',
    (text) => {
      const refused = `${JSON.stringify(text)} is not allowed; expected ${PORT}`;
      expect(refusal({ port: text })).toBe(`invalid options: port: ${refused}`);
      expect(refusal({ admin: { port: text } })).toBe(`invalid options: admin.port: ${refused}`);
      expect(refusal({}, { PORT: text })).toBe(`invalid environment: PORT: ${refused}`);
    },
  );

  it('for a group: an object, whose missing keys have their defaults', () => {
    const { shutdown } = resolve({ shutdown: { lameDuckMs: 5, killTimeoutMs: undefined } });
    expect(shutdown).toEqual({ lameDuckMs: 5, drainTimeoutMs: 10_000, killTimeoutMs: 2_000 });
    for (const value of [null, 5, 'fast', false, []]) {
      expect(refusal({ shutdown: value })).toMatch(/shutdown: .*an object with/);
    }
  });

  it('for groups that may be false', () => {
    const { control, warnings } = resolve({ control: false, warnings: false });
    expect([control, warnings]).toEqual([undefined, { shown: false, ignore: [] }]);
    expect(resolve({ hangTimeoutMs: false }).hangTimeoutMs).toBe(Infinity);
  });

  it('for unknown keys: they are refused with the value seen and the keys that are known', () => {
    expect(refusal({ portt: 3001 })).toMatch(
      /portt: 3001 .*known options: port, host, path, workers/,
    );
    expect(refusal({ shutdown: { drain: 7 } })).toMatch(/shutdown\.drain: 7 .*drainTimeoutMs/);
    expect(refusal({ portt: undefined })).toContain('portt:');
    for (const key of ['toString', 'constructor', '__proto__']) {
      expect(refusal(JSON.parse(`{"${key}": 1}`))).toContain(`${key}:`);
      expect(refusal({ admin: JSON.parse(`{ "port": 1, "${key}": 1 }`) })).toContain(
        `admin.${key}: 1 is not allowed; no such option here; known options: port, host`,
      );
    }
  });

  it('for several problems: one message names each once', () => {
    const message = refusal({ port: 'no', readyTimeoutMs: 0, log: { level: 5 }, extra: 1 });
    for (const key of ['port: "no"', 'readyTimeoutMs: 0', 'log.level: 5', 'extra:']) {
      expect(message.split(key)).toHaveLength(2);
    }
  });

  it('for the result: it is frozen, and the input is not', () => {
    const options = { shutdown: { lameDuckMs: 1 }, admin: { port: 1 }, reload: {} };
    const resolved = resolve(options);
    for (const value of Object.values({ resolved, ...resolved })) {
      expect(Object.isFrozen(value)).toBe(true);
    }
    expect(options).toEqual({ shutdown: { lameDuckMs: 1 }, admin: { port: 1 }, reload: {} });
    expect(Object.isFrozen(options.shutdown)).toBe(false);
  });
});

describe('workers', () => {
  it('are what the machine allows, 256 at most', () => {
    for (const workers of ['auto', undefined]) {
      expect(resolve({ workers }, {}, () => 7).workers).toBe(7);
    }
    expect(resolve({}, {}, () => 1_000).workers).toBe(256);
  });

  it('to scale to are 1 to 256', () => {
    for (const workers of [1, 256]) expect(checkWorkerCount(workers)).toBe(workers);
    for (const workers of [0, -1, 257, 1.5, NaN, '2', 'auto', undefined, null, {}]) {
      expect(() => checkWorkerCount(workers as number)).toThrow('a whole number from 1 to 256');
    }
  });
});

describe('the address', () => {
  it('is given with any of its options, and a unix socket with path', () => {
    for (const options of [{ port: 3000 }, { port: 0 }, { host: '::1' }, { path: '/a.sock' }]) {
      expect(resolve(options).addressGiven).toBe(true);
    }
    expect(resolve({ path: '/a.sock' }).address).toEqual({ kind: 'unix', path: '/a.sock' });
  });

  it.each([
    ['8080', {}, 8_080],
    ['8080', { host: '127.0.0.1' }, 8_080],
    ['8080', { port: undefined }, 8_080],
    ['8080', { port: '5000' }, 5_000],
    ['', {}, 3_000],
  ])('has the port of PORT=%j, unless the options %j have one', (PORT, options, port) => {
    expect(resolve(options, { PORT }).address).toMatchObject({ port });
    // A host may set the variable for every program.
    expect(resolve({}, { PORT }).addressGiven).toBe(false);
  });

  it.each([{ port: 5_000 }, { path: '/a.sock' }])('does not read PORT with %j', (options) => {
    expect(() => resolve(options, { PORT: 'junk' })).not.toThrow();
  });
});

describe('the admin listener', () => {
  const token = 'of-16-characters';

  it.each(['127.0.0.1', '127.255.255.254', '::1', 'localhost'])('needs no token on %s', (host) => {
    expect(resolve({ admin: { port: 1, host } }).admin).toEqual({ port: 1, host });
  });

  it.each(['0.0.0.0', '::', '10.0.0.1', '128.0.0.1', '::ffff:10.0.0.1'])(
    'needs a token on %s, or an explicit false',
    (host) => {
      const admin = { port: 1, host };
      expect(refusal({ admin })).toContain(
        `admin.host ("${host}") can be reached from other machines`,
      );
      expect(resolve({ admin: { ...admin, token } }).admin?.token).toBe(token);
      expect(resolve({ admin: { ...admin, token: false } }).admin?.token).toBeUndefined();
      expect(resolve({ admin }, { CLUSTER_ADMIN_TOKEN: token }).admin?.token).toBe(token);
    },
  );

  it('is only on an address, and has only a token that cannot be guessed, which no message shows', () => {
    for (const host of ['127.0.0', '127.0.0.1.evil.example', 'xlocalhost', '', '::1\n', 1, null]) {
      expect(refusal({ admin: { port: 1, host, token: false } })).toContain('admin.host: ');
    }
    const refused = `admin.token: its value is not allowed; expected ${TOKEN}`;
    for (const wrong of [
      '',
      'x'.repeat(15),
      'x'.repeat(513),
      `${'x'.repeat(20)} y`,
      'é'.repeat(20),
      5,
    ]) {
      expect(refusal({ admin: { port: 1, token: wrong } })).toBe(`invalid options: ${refused}`);
    }
  });

  it('does not show a token in the wrong place, nor with the options', () => {
    expect(refusal({ adminToken: token, admin: { port: 1, Token: token } })).not.toContain('of-16');
    const { admin } = resolve({ admin: { port: 1, token } });
    expect(JSON.stringify({ ...admin })).not.toContain('of-16');
  });
});

it('checks the names of events', () => {
  const listener = () => {};
  expect(resolve({ on: { 'worker-exit': listener } }).on).toMatchObject({
    'worker-exit': listener,
  });
  expect(checkEventName('worker-exit')).toBe('worker-exit');
  for (const name of ['worker-exploded', 'error', 'constructor']) {
    expect(refusal({ on: { [name]: listener } })).toContain(
      `on.${name}: a function is not allowed`,
    );
    expect(() => checkEventName(name)).toThrow(`name of an event: "${name}" is not allowed`);
  }
});

it('checks each finding that is ignored', () => {
  const ignore = ['cache', 'throttler'];
  expect(resolve({ warnings: { ignore } }).warnings).toEqual({ shown: true, ignore });
  expect(refusal({ warnings: { ignore: ['cache', 'cash'] } })).toContain(
    'warnings.ignore.1: "cash" ',
  );
});

it('reports wrong options in the format that they name, if that is one', () => {
  expect(logFormatIn({ log: { format: 'json', level: 'loud' } }, {})).toBe('json');
  expect(logFormatIn({ log: { format: 'text' } }, { CLUSTER_LOG_FORMAT: 'json' })).toBe('json');
  expect(logFormatIn({ log: { format: 'json' } }, { CLUSTER_LOG_FORMAT: 'xml' })).toBe('json');
  for (const input of [undefined, null, 5, [], { log: null }, { log: { format: 'xml' } }]) {
    expect(logFormatIn(input, {})).toBe('text');
  }
});
