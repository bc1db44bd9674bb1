import { describe, expect, it } from 'vitest';
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
const FATAL = { type: 'fatal', error: ERROR, requests: [] } as const;
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
});

it('a message of the primary arrives as it was sent, in the envelope of this version only', () => {
  const ping = { type: 'ping', seq: 1 } as const;
  expect(parsePrimaryMessage(seal(ping))).toEqual({ ...ENVELOPE, ...ping });
  for (const other of [null, 'ping', [], ping, { ...seal(ping), v: 2 }, { ...seal(ping), ns: 'x' }])
    expect(parsePrimaryMessage(other)).toBeUndefined();
});

it('a message of this package in another version is recognised, and no other', () => {
  expect(isOurs(seal({ type: 'leaving' }))).toBe(true);
  expect(foreignVersionOf(seal({ type: 'leaving' }))).toBeUndefined();
  expect(foreignVersionOf({ ns: 'nestjs-cluster', v: 99, type: 'from the future' })).toBe(99);
  expect(foreignVersionOf({ ns: 'nestjs-cluster', v: '2' })).toBeUndefined();
  for (const other of [{ ns: 'nestjs-cluster-2', v: 2 }, [], null, undefined, 'nestjs-cluster']) {
    expect([isOurs(other), foreignVersionOf(other)]).toEqual([false, undefined]);
  }
});

it('a handle that no one takes is closed, whatever it is', () => {
  const closed: string[] = [];
  closeHandle({ close: () => closed.push('server') });
  closeHandle({ destroy: () => closed.push('socket'), close: () => closed.push('never') });
  closeHandle(undefined);
  expect(closed).toEqual(['server', 'socket']);
});
