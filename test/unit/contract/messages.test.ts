import { describe, expect, it } from 'vitest';
import { reportError } from '../../../src/contract/errors/error-report.js';
import {
  closeHandle,
  foreignVersionOf,
  isOurs,
  parsePrimaryMessage,
  parseWorkerMessage,
  seal,
  type WorkerMessage,
} from '../../../src/contract/messages.js';
import { STATS } from '../support/fake-worker.js';

const ENVELOPE = { ns: 'nestjs-cluster', v: 1 };
const ERROR = { name: 'TypeError', message: 'x is not a function', stack: 'at x', code: 'EX' };
const FATAL = { type: 'fatal', error: ERROR, abort: false, requests: [] } as const;
const PONG = { type: 'pong', seq: 7, stats: STATS, debugged: false } as const;
const LOAD = { type: 'load', requests: 10, connections: 2, utilization: 0.5 } as const;
const READY = { type: 'ready', url: null, endpoints: ['/health'], minReady: 'all' } as const;
const SCALE = { type: 'scale-request', id: 1, workers: 2 } as const;
const REPORT = { destroyedConnections: 1, abortedRequests: 2, destroyedWebSockets: 1 };
const DRAINED = { type: 'drained', report: { ...REPORT, hookError: null } } as const;
const MESSAGES: readonly WorkerMessage[] = [
  FATAL,
  PONG,
  LOAD,
  READY,
  SCALE,
  DRAINED,
  { type: 'ready' },
  { type: 'leaving' },
];

/** Parses a message as it arrives: as JSON makes it. */
const parse = (message: object): WorkerMessage | undefined =>
  parseWorkerMessage(JSON.parse(JSON.stringify({ ...ENVELOPE, ...message })));

describe('a message of a worker', () => {
  it.each(MESSAGES)(
    'arrives as it was sent, without fields that the protocol lacks: %j',
    (sent) => {
      expect(parse(seal(sent))).toEqual(sent);
      expect(parse({ ...sent, extra: 1, cmd: 'NODE_x' })).toEqual(sent);
    },
  );

  it.each([{ ns: 'other' }, { ns: undefined }, { v: 2 }, { v: '1' }, { v: undefined }])(
    'is dropped in another envelope: %j',
    (envelope) => {
      expect(parse({ type: 'leaving', ...envelope })).toBeUndefined();
    },
  );

  it.each(['ping', 'unknown', '', 'constructor', '__proto__', { toString: null }, null])(
    'is dropped with the type %j',
    (type) => {
      expect(parse({ type })).toBeUndefined();
    },
  );

  it.each([null, undefined, 0, '', [], {}, JSON.stringify(seal(FATAL)), { cmd: 'NODE_CLUSTER' }])(
    'is dropped if it belongs to the app: %j',
    (message) => {
      expect(parseWorkerMessage(message)).toBeUndefined();
    },
  );

  it.each([
    ['an amount', LOAD, 'utilization', [-1, '1', null, Infinity, NaN, true, {}]],
    ['a count', LOAD, 'requests', [0.5, 2 ** 53, -1, '1', null]],
    ['a number of workers', SCALE, 'workers', [0, 257, 1.5, '2', null]],
    ['a part', DRAINED, 'report', [null, REPORT, { ...DRAINED.report, abortedRequests: '2' }]],
  ] as const)('is dropped if %s is missing or wrong', (_, message, key, wrong) => {
    expect(parse({ ...message, [key]: undefined })).toBeUndefined();
    for (const value of wrong) {
      expect(parseWorkerMessage({ ...ENVELOPE, ...message, [key]: value })).toBeUndefined();
    }
  });

  it('changes no prototype', () => {
    const hostile = '{"ns":"nestjs-cluster","v":1,"type":"leaving","__proto__":{"polluted":1}}';
    const parsed = parseWorkerMessage(JSON.parse(hostile)) as object;
    expect(Object.getPrototypeOf(parsed)).toBe(Object.prototype);
    expect('polluted' in parsed).toBe(false);
  });
});

it('a message of the primary arrives as it was sent, in the envelope of this version only', () => {
  const ping = { type: 'ping', seq: 1 } as const;
  expect(parsePrimaryMessage(seal(ping))).toEqual({ ...ENVELOPE, ...ping });
  for (const other of [null, 'ping', [], ping, { ...seal(ping), v: 2 }, { ...seal(ping), ns: 'x' }])
    expect(parsePrimaryMessage(other)).toBeUndefined();
});

it.each([
  [seal({ type: 'leaving' }), true, undefined],
  [{ ns: 'nestjs-cluster', v: 99, type: 'from the future' }, true, 99],
  [{ ns: 'nestjs-cluster', v: '2' }, true, undefined],
  [{ ns: 'nestjs-cluster' }, true, undefined],
  [{ ns: 'nestjs-cluster-2', v: 2 }, false, undefined],
  [[], false, undefined],
  [null, false, undefined],
  [undefined, false, undefined],
  ['nestjs-cluster', false, undefined],
])('%j is ours: %s, of another version: %s', (message, ours, version) => {
  expect([isOurs(message), foreignVersionOf(message)]).toEqual([ours, version]);
});

it('a handle that no one takes is closed, whatever it is', () => {
  const closed: string[] = [];
  closeHandle({ close: () => closed.push('server') });
  closeHandle({ destroy: () => closed.push('socket'), close: () => closed.push('never') });
  for (const nothing of [undefined, null, 5, {}]) closeHandle(nothing);
  expect(closed).toEqual(['server', 'socket']);
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
  ])('reports other thrown values: %o', (thrown, message) => {
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
  ])('has short texts only, whatever was thrown: %s', (_, thrown) => {
    const { name, message, stack = '', code = '' } = reportError(thrown);
    for (const text of [name, message, stack, code]) {
      expect(typeof text).toBe('string');
      expect(text.length).toBeLessThanOrEqual(65_536);
    }
  });
});
