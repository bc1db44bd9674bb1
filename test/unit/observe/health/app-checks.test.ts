import { Logger } from '@nestjs/common';
import { HealthIndicatorService } from '@nestjs/terminus';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { AppChecks } from '../../../../src/observe/health/app-checks.js';
import { OnceLog } from '../../../../src/observe/health/once-log.js';

const TIMEOUT_MS = 1_000;
const SECRET = 'postgres://admin:hunter2@db.internal/shop';

let logged: string[];

beforeEach(() => {
  logged = [];
  vi.useFakeTimers();
  vi.spyOn(Logger.prototype, 'error').mockImplementation((message: unknown) => {
    logged.push(String(message));
  });
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

type Check = () => unknown;

function checksOf(indicators: Readonly<Record<string, Check>>, knowsDegraded = true): AppChecks {
  const named = Object.entries(indicators).map(([name, check]) => ({ name, check }));
  return new AppChecks(named, { knowsDegraded }, new OnceLog());
}

const up = (key: string, details: object = {}) => ({ [key]: { status: 'up', ...details } });
const THREW = { status: 'down', message: 'threw an error; see the log' };
const INVALID = { status: 'down', message: 'gave no valid result; see the log' };
const LATE = { status: 'down', message: 'gave no result within 1000 ms' };

describe('the result of an indicator', () => {
  it('is under its own keys, in the order of the list', async () => {
    const checks = checksOf({
      a: async () => ({ ...up('x', { ms: 3 }), ...up('y') }),
      b: () => ({ z: { status: 'down', message: 'no' } }),
    });
    const report = await checks.check();
    expect(report).toEqual({
      x: { status: 'up', ms: 3 },
      y: { status: 'up' },
      z: { status: 'down', message: 'no' },
    });
    expect(Object.keys(report)).toEqual(['x', 'y', 'z']);
    expect(logged).toEqual([]);
  });

  it('may be an attempt of terminus, which has a timeout of its own', async () => {
    vi.useRealTimers();
    const health = new HealthIndicatorService();
    const checks = checksOf({
      a: () => health.check('fine').attempt(async () => ({ rows: 1 })),
      b: async () =>
        health
          .check('late')
          .attempt(() => new Promise(() => {}))
          .withTimeout(1),
    });
    expect(await checks.check()).toMatchObject({
      fine: { status: 'up', rows: 1 },
      late: { status: 'down', message: 'timeout of 1ms exceeded' },
    });
  });

  it('may be what terminus 11 calls the causes of a HealthCheckError', async () => {
    const causes = { db: { status: 'down', rows: 0 } };
    const checks = checksOf({
      a: () => {
        throw Object.assign(new Error('no'), { isHealthCheckError: true, causes });
      },
    });
    expect(await checks.check()).toEqual(causes);
    expect(logged).toEqual([]);
  });

  it('is down where it gives nothing: a check that can never fail is none', async () => {
    expect(await checksOf({ a: () => ({}) }).check()).toEqual({
      a: { status: 'down', message: 'gave no valid result; see the log' },
    });
  });

  it('never takes a key of this package, nor of an indicator before it', async () => {
    const checks = checksOf({
      a: () => ({ ...up('cluster'), ...up('eventLoop'), ...up('memory'), ...up('offload') }),
      b: () => ({ ...up('memory2'), ...up('memory') }),
      memory: () => Promise.reject(new Error('no')),
    });
    expect(await checks.check()).toEqual({
      ...up('cluster2'),
      ...up('eventLoop2'),
      ...up('memory2'),
      ...up('offload2'),
      ...up('memory22'),
      ...up('memory3'),
      memory4: THREW,
    });
  });

  it('that is degraded stays so only where terminus knows the word', async () => {
    const indicators = { a: () => ({ db: { status: 'degraded', rows: 1 } }) };
    expect(await checksOf(indicators).check()).toEqual({ db: { status: 'degraded', rows: 1 } });
    expect(await checksOf(indicators, false).check()).toEqual({ db: { status: 'up', rows: 1 } });
  });
});

describe('an indicator that fails', () => {
  it.each<[string, Check, object]>([
    [
      'throws',
      () => {
        throw new Error(SECRET);
      },
      THREW,
    ],
    ['rejects', () => Promise.reject(new Error(SECRET)), THREW],
    ['rejects with an object', () => Promise.reject({ dsn: SECRET }), THREW],
    ['rejects with nothing', () => Promise.reject(), THREW],
    ['rejects with what has no text', () => Promise.reject(HOSTILE), THREW],
    ['gives a cycle', () => ({ db: { status: 'up', CYCLE } }), THREW],
    ['gives a bigint', () => ({ db: { status: 'up', rows: 1n } }), THREW],
    [
      'gives a getter that throws',
      () => ({
        get db() {
          throw new Error(SECRET);
        },
      }),
      THREW,
    ],
    ['gives nothing', () => {}, INVALID],
    ['gives null', () => null, INVALID],
    ['gives a text', () => SECRET, INVALID],
    ['gives a list', () => [SECRET], INVALID],
    ['gives a text for a report', () => ({ db: SECRET }), INVALID],
    ['gives another status', () => ({ db: { status: 'ok', SECRET } }), INVALID],
    ['gives no status', () => ({ ...up('fine'), db: { SECRET } }), INVALID],
  ])('because it %s is down under its name, and the rest stays', async (_how, check, expected) => {
    const checks = checksOf({ before: () => up('a'), db: check, after: () => up('b') });
    const report = await checks.check();
    expect(report).toEqual({ ...up('a'), db: expected, ...up('b') });
    expect(JSON.stringify(report)).not.toContain(SECRET);
    expect(logged).toHaveLength(1);
    expect(logged[0]).toContain('health indicator "db" ');
  });

  it('is down after its time where it hangs, and the rest waits no longer', async () => {
    const checks = checksOf({ a: () => up('a'), db: () => new Promise(() => {}) });
    let report: unknown;
    void checks.check().then((result) => (report = result));

    await vi.advanceTimersByTimeAsync(TIMEOUT_MS - 1);
    expect(report).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1);

    expect(report).toEqual({ ...up('a'), db: LATE });
    expect(logged).toEqual(['health indicator "db" gave no result within 1000 ms']);
  });

  it('leaves no timer behind where it answers in time', async () => {
    await checksOf({ a: () => up('a'), b: () => Promise.reject(new Error('no')) }).check();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is told in the log also where it throws after its time', async () => {
    const fails = new Promise<never>((_resolve, reject) => {
      setTimeout(() => reject(new Error('ETIMEDOUT')), TIMEOUT_MS + 1);
    });
    const checked = checksOf({ db: () => fails }).check();
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS);
    expect(await checked).toEqual({ db: LATE });

    await vi.advanceTimersByTimeAsync(1);

    expect(logged).toHaveLength(2);
    expect(logged[1]).toContain('ETIMEDOUT');
  });
});

describe('the log of what indicators throw', () => {
  const throwing = (messages: readonly string[]) => {
    let i = 0;
    return checksOf({ db: () => Promise.reject(new Error(messages[i++])) });
  };

  it('has each message once, on one line, with the place', async () => {
    const checks = throwing(['down', 'down', 'gone\nfor \u001B[31mgood', 'down']);
    for (let i = 0; i < 4; i++) await checks.check();
    expect(logged).toHaveLength(2);
    expect(logged[0]).toMatch(
      /^health indicator "db" threw an error: Error: down \| at .*app-checks/,
    );
    expect(logged[1]).toContain('Error: gone | for good');
    expect(logged.join('')).not.toMatch(/\p{Cc}/u);
  });

  it('has it for each indicator', async () => {
    const no = () => Promise.reject(new Error('no'));
    await checksOf({ a: no, b: no }).check();
    expect(logged).toHaveLength(2);
  });

  it('does not remember for ever', async () => {
    const messages = Array.from({ length: 101 }, (_, i) => `error ${i}`);
    const checks = throwing([...messages, 'error 0', 'error 100']);
    for (let i = 0; i < 103; i++) await checks.check();
    expect(logged).toHaveLength(102);
    expect(logged.at(-1)).toContain('error 0');
  });
});

const HOSTILE = new Proxy(
  {},
  {
    get() {
      throw new Error('do not touch');
    },
    getPrototypeOf() {
      throw new Error('do not touch');
    },
  },
);

const CYCLE: { self?: object } = {};
CYCLE.self = CYCLE;
