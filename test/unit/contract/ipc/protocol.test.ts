import { describe, expect, it } from 'vitest';
import {
  foreignVersionOf,
  isOurs,
  parsePrimaryMessage,
  parseWorkerMessage,
  reportError,
  seal,
  type WorkerMessage,
} from '../../../../src/contract/ipc/index.js';
import { MAX_METRICS_BODY_LENGTH } from '../../../../src/contract/snapshot/index.js';
import { STATS } from '../../support/fake-worker.js';

const ENVELOPE = { ns: 'nestjs-cluster', v: 1 };
const ERROR = { name: 'TypeError', message: 'x is not a function', stack: 'at x', code: 'EX' };
const FATAL = { type: 'fatal', error: ERROR, abort: false, requests: [] } as const;
const PONG = { type: 'pong', seq: 7, stats: STATS, debugged: false } as const;
const LOAD = { type: 'load', requests: 10, connections: 2, utilization: 0.5 } as const;
const READY = { type: 'ready', url: 'http://127.0.0.1:3000', endpoints: ['/health'] } as const;
const DRAINED = {
  type: 'drained',
  report: {
    destroyedConnections: 1,
    abortedRequests: 2,
    destroyedWebSockets: 1,
    hookError: 'no',
  },
} as const;
const MESSAGES: readonly WorkerMessage[] = [FATAL, PONG, LOAD, READY, DRAINED, { type: 'leaving' }];

/** As it arrives: what JSON makes of it. */
const parse = (message: object): WorkerMessage | undefined =>
  parseWorkerMessage(JSON.parse(JSON.stringify({ ...ENVELOPE, ...message })));

describe('a message of a worker', () => {
  it.each(MESSAGES)('passes as it was sent: $type', (message) => {
    expect(parse(seal(message))).toEqual(message);
  });

  it.each([{ ns: 'other' }, { ns: undefined }, { v: 2 }, { v: '1' }, { v: undefined }])(
    'is dropped in another envelope: %j',
    (envelope) => {
      expect(parse({ type: 'leaving', ...envelope })).toBeUndefined();
    },
  );

  it.each(['ping', 'unknown', '', 'constructor', '__proto__', 5, null])(
    'is dropped with the type %j',
    (type) => {
      expect(parse({ type })).toBeUndefined();
    },
  );

  it.each([null, undefined, 0, '', [], {}, JSON.stringify(seal(FATAL)), { cmd: 'NODE_CLUSTER' }])(
    'is dropped where it is not ours: %j',
    (message) => {
      expect(parseWorkerMessage(message)).toBeUndefined();
    },
  );

  it.each([
    ['an amount', LOAD, 'utilization', [-1, '1', null, Infinity, NaN, true, {}]],
    ['a whole number', LOAD, 'requests', [0.5, 2 ** 53, -1, '1', null]],
    ['a truth value', FATAL, 'abort', [1, 0, 'true', '', null, []]],
    ['a text', FATAL, 'error', [null, {}, 'x', { ...ERROR, message: 5 }, { ...ERROR, stack: {} }]],
    ['a list', READY, 'endpoints', [null, '/health', [5], Array(17).fill('/x')]],
    ['a number of workers', { type: 'scale-request', id: 1, workers: 2 }, 'workers', [0, 257, 1.5]],
  ] as const)('is dropped where %s is missing or wrong', (_, message, key, wrong) => {
    expect(parse(message)).toEqual(message);
    // A worker without HTTP sends no endpoints.
    if (key !== 'endpoints') expect(parse({ ...message, [key]: undefined })).toBeUndefined();
    for (const value of wrong) {
      expect(parseWorkerMessage({ ...ENVELOPE, ...message, [key]: value })).toBeUndefined();
    }
  });

  it('is dropped where its metrics are too large', () => {
    const body = 'x'.repeat(MAX_METRICS_BODY_LENGTH);
    const metrics = { type: 'metrics', asked: true, stats: STATS, ageMs: 0 } as const;
    expect(parse({ ...metrics, body })).toBeDefined();
    expect(parse({ ...metrics, body: `${body}x` })).toBeUndefined();
  });

  it('is cut where a text is longer than 64 Ki, never dropped for that', () => {
    const fits = 'x'.repeat(64 * 1024);
    const fatal = (message: string) => ({ ...FATAL, error: { ...ERROR, message } });
    expect(parse(fatal(fits))).toEqual(fatal(fits));
    expect(parse(fatal(`${fits}x`))).toEqual(fatal(fits));
    expect(parse({ ...READY, url: `${fits}x` })).toEqual({ ...READY, url: fits });
  });

  it('is a pong whatever it says of the worker, and brings what is right of that', () => {
    expect(parse({ type: 'pong' })).toEqual({ type: 'pong', stats: {} });
    const stats = { requestsTotal: 7, heapUsedBytes: null, residentMemoryBytes: '1', unknown: 1 };
    expect(parse({ type: 'pong', seq: 3, stats, debugged: 'no' })).toEqual({
      type: 'pong',
      seq: 3,
      stats: { requestsTotal: 7 },
      debugged: undefined,
    });
  });

  it('of a drain counts as none what another version does not say', () => {
    expect(parse({ type: 'drained', report: { abortedRequests: 3 } })).toEqual({
      type: 'drained',
      report: {
        destroyedConnections: 0,
        abortedRequests: 3,
        destroyedWebSockets: 0,
        hookError: null,
      },
    });
  });

  it('brings no field along that the protocol does not have, and no prototype', () => {
    const extra = { extra: 1, cmd: 'NODE_x' };
    for (const message of MESSAGES) expect(parse({ ...message, ...extra })).toEqual(message);
    expect(parse({ ...FATAL, error: { ...ERROR, ...extra } })).toEqual(FATAL);
    const hostile = '{"ns":"nestjs-cluster","v":1,"type":"leaving","__proto__":{"polluted":1}}';
    const parsed = parseWorkerMessage(JSON.parse(hostile)) as object;
    expect(Object.getPrototypeOf(parsed)).toBe(Object.prototype);
    expect('polluted' in parsed).toBe(false);
  });
});

describe('a message of the primary', () => {
  it('passes as it was sent, and only in our envelope', () => {
    const ping = { type: 'ping', seq: 1 } as const;
    expect(parsePrimaryMessage(seal(ping))).toEqual({ ...ENVELOPE, ...ping });
    const others = [
      null,
      'ping',
      [],
      ping,
      { ...seal(ping), v: 2 },
      { ...seal(ping), ns: 'other' },
    ];
    for (const other of [...others, ENVELOPE, { ...ENVELOPE, type: 5 }]) {
      expect(parsePrimaryMessage(other)).toBeUndefined();
    }
  });
});

describe('an envelope', () => {
  it.each([
    [seal({ type: 'leaving' }), true, undefined],
    [{ ns: 'nestjs-cluster', v: 99, type: 'from the future' }, true, 99],
    [{ ns: 'nestjs-cluster', v: '2' }, true, undefined],
    [{ ns: 'nestjs-cluster' }, true, undefined],
    [{ ns: 'nestjs-cluster-2', v: 2 }, false, undefined],
    [{ cmd: 'NODE_x' }, false, undefined],
    [[], false, undefined],
    [null, false, undefined],
    ['nestjs-cluster', false, undefined],
  ])('%j is ours: %s, of another version: %s', (message, ours, version) => {
    expect([isOurs(message), foreignVersionOf(message)]).toEqual([ours, version]);
  });
});

const no = (): never => {
  throw new Error('no');
};

describe('the report of an error', () => {
  it('keeps name, message, stack and code', () => {
    const error = Object.assign(new TypeError('bad'), { code: 'EBAD' });
    const { stack } = error;
    expect(reportError(error)).toEqual({ name: 'TypeError', message: 'bad', stack, code: 'EBAD' });
    expect(reportError(Object.assign(new Error('x'), { code: 5 })).code).toBeUndefined();
  });

  it.each([
    ['a text', 'a text'],
    [undefined, 'undefined'],
    [Symbol('s'), 'Symbol(s)'],
    [{ toString: (): string => 'an object' }, 'an object'],
  ])('tells what else was thrown: %o', (thrown, message) => {
    expect(reportError(thrown)).toEqual({ name: 'Error', message });
  });

  it.each([
    ['a huge message', new Error('x'.repeat(1_000_000))],
    ['a huge stack', Object.assign(new Error('x'), { stack: 'at x\n'.repeat(1_000_000) })],
    ['no stack', Object.assign(new Error('x'), { stack: undefined })],
    ['no prototype', Object.create(null)],
    ['a text that cannot be made', { toString: no }],
    ['a message that is an object', Object.assign(new Error('x'), { message: {} })],
    ['no name', Object.assign(new Error('x'), { name: undefined })],
    // Error.prepareStackTrace may return any value. Some libraries make it return an array.
    ['a stack that is an array', Object.assign(new Error('x'), { stack: [{}] })],
    ['a stack that throws', Object.defineProperty(new Error('x'), 'stack', { get: no })],
    ['a proxy for prototype', new Proxy(new Error('x'), { getPrototypeOf: no })],
  ])('arrives whatever was thrown: %s', (_, thrown) => {
    expect(parse({ ...FATAL, error: reportError(thrown) })).toBeDefined();
  });
});
