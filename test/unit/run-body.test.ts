import { NotFoundException } from '@nestjs/common';
import { AsyncLocalStorage } from 'node:async_hooks';
import { EMPTY, of, Subject, throwError } from 'rxjs';
import { afterEach, describe, expect, it } from 'vitest';
import { UncloneableValueError } from '../../src/errors/index.js';
import { type CarriedContexts, carryContext } from '../../src/offload/carry-context.js';
import { runBody } from '../../src/offload/run-body.js';
import { restoreError } from '../../src/offload/task-error.js';

const CARRIED = Symbol.for('nestjs-cluster.carried-contexts');

afterEach(() => {
  delete (globalThis as { [CARRIED]?: unknown })[CARRIED];
});

const run = (body: () => unknown, contexts?: CarriedContexts) =>
  runBody('Cats.count', body, contexts);

/** What a body throws that runs where it is to run. */
async function thrownBy(body: () => unknown): Promise<unknown> {
  const result = await run(body);
  if (!('error' in result)) throw new Error('it did not fail');
  return restoreError(structuredClone(result.error));
}

describe('a body that runs', () => {
  it.each([
    ['a value', () => 5, 5],
    ['nothing', () => {}, undefined],
    ['a promise', async () => ({ a: 1 }), { a: 1 }],
    ['an Observable: its last value', () => of(1, 2, 3), 3],
    ['a promise of an Observable, which Nest takes too', async () => of(1, 2, 3), 3],
    ['an object that can be subscribed to but is none', () => ({ subscribe: 1 }), { subscribe: 1 }],
  ])('may give %s', async (_, body: () => unknown, value) => {
    expect(await run(body)).toEqual({
      ok: true,
      value,
      buffers: [],
      contexts: undefined,
    });
  });

  it('gives the last value of an Observable when that is complete', async () => {
    const subject = new Subject<number>();
    const result = run(() => subject);
    await new Promise(setImmediate);
    for (const n of [1, 2]) subject.next(n);
    subject.complete();
    expect(await result).toMatchObject({ value: 2 });
  });

  it('says where in its result Buffers are', async () => {
    expect(await run(() => ({ image: Buffer.from('x') }))).toMatchObject({
      buffers: [[0, 'image']],
    });
    expect(await run(() => Buffer.from('x'))).toMatchObject({ buffers: [[0]] });
  });
});

describe('a body that fails', () => {
  it.each([
    [
      'at once',
      () => {
        throw new NotFoundException('x');
      },
    ],
    ['later', () => Promise.reject(new NotFoundException('x'))],
    ['as an Observable', () => throwError(() => new NotFoundException('x'))],
  ])('gives what it has thrown: %s', async (_, body: () => unknown) => {
    expect(await thrownBy(body)).toBeInstanceOf(NotFoundException);
  });

  it('may throw anything', async () => {
    expect(await thrownBy(() => Promise.reject())).toBeUndefined();
    expect(
      await thrownBy(() => {
        throw 'x';
      }),
    ).toBe('x');
  });

  it('has an Observable without a value as a failure, as Nest has', async () => {
    expect(await thrownBy(() => EMPTY)).toMatchObject({ name: 'EmptyError' });
  });

  it('never rejects, whatever is thrown', async () => {
    const odd = Object.assign(Object.create(null) as object, { f: () => 1 });
    expect(await run(() => Promise.reject(odd))).toMatchObject({ ok: false });
  });
});

describe('a result that cannot be copied', () => {
  it.each([
    ['result is a function', () => () => 1],
    ['result.rows[1] is a function', async () => ({ rows: [1, () => 1] })],
  ])('is a failure that says what in it it is: %s', async (words, body) => {
    const error = await thrownBy(body);
    expect(error).toMatchObject({
      name: 'UncloneableValueError',
      code: 'CLUSTER_UNCLONEABLE_VALUE',
    });
    expect((error as Error).message).toContain(
      `Cats.count: the result cannot be copied from its thread: ${words}; return plain data`,
    );
    expect(new UncloneableValueError('x').code).toBe((error as UncloneableValueError).code);
  });

  it.each([
    [
      'a generator',
      () =>
        (function* () {
          yield 1;
        })(),
    ],
    ['a stream', () => ({ body: new ReadableStream() })],
    ['a formatter', () => new Intl.NumberFormat('en')],
  ])('is a failure also where it is %s', async (_, body: () => unknown) => {
    expect(await thrownBy(body)).toMatchObject({ name: 'UncloneableValueError' });
  });
});

describe('the contexts of a body', () => {
  function carried() {
    const storage = new AsyncLocalStorage<Record<string, unknown>>();
    carryContext('request', storage);
    return storage;
  }

  it('are what it runs in, and come back as it has changed them', async () => {
    const storage = carried();
    const result = await run(
      async () => {
        await Promise.resolve();
        storage.getStore()!['rows'] = 5;
        return storage.getStore()!['id'];
      },
      { request: { id: 7 } },
    );
    expect(result).toMatchObject({ value: 7, contexts: { request: { rows: 5 } } });
  });

  it('do not come back as far as it has not touched them', async () => {
    const storage = carried();
    const result = await run(() => void (storage.getStore()!['rows'] = 5), {
      request: { id: 7, rows: 1 },
    });
    expect(result).toMatchObject({ contexts: { request: { rows: 5 } } });
    expect(
      (result as unknown as { contexts: { request: object } }).contexts.request,
    ).not.toHaveProperty('id');
  });

  it('are a failure where it has put into them what cannot be copied', async () => {
    const storage = carried();
    const result = await run(() => void (storage.getStore()!['log'] = () => 1), {
      request: {},
    });
    expect(result).toMatchObject({
      ok: false,
      error: { message: expect.stringMatching(/a carried context.*log is a function/) as string },
    });
  });

  it('are its own where it runs in those of its caller', async () => {
    const storage = carried();
    await storage.run({ id: 7 }, async () => {
      const result = await run(() => storage.getStore()!['id']);
      expect(result).toMatchObject({ value: 7, contexts: undefined });
    });
  });
});
