import { NotFoundException } from '@nestjs/common';
import { AsyncLocalStorage } from 'node:async_hooks';
import { EMPTY, of, Subject, throwError } from 'rxjs';
import { afterEach, describe, expect, it } from 'vitest';
import { ClusterUncloneableError } from '../../../../src/contract/errors/index.js';
import { type CarriedContexts, carryContext } from '../../../../src/offload/task/carry-context.js';
import { runBody } from '../../../../src/offload/task/run-body.js';
import { restoreError } from '../../../../src/offload/task/task-error.js';

const CARRIED = Symbol.for('nestjs-cluster.carried-contexts');

afterEach(() => {
  delete (globalThis as { [CARRIED]?: unknown })[CARRIED];
});

const run = (body: () => unknown, contexts?: CarriedContexts) =>
  runBody('Cats.count', body, contexts);

/** The error that a body throws, as its caller gets it. */
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
    expect(await run(body)).toEqual({ ok: true, value, buffers: [] });
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
    ['a function', () => () => 1],
    ['a function in it', async () => ({ rows: [1, () => 1] })],
    ['a stream', () => ({ body: new ReadableStream() })],
    ['a formatter', () => new Intl.NumberFormat('en')],
  ])('is a failure that says so: %s', async (_, body: () => unknown) => {
    const error = await thrownBy(body);
    expect(error).toBeInstanceOf(ClusterUncloneableError);
    expect((error as Error).message).toMatch(
      /^Cats\.count: an argument or the result cannot be copied between threads: .+; pass and return plain data/,
    );
  });
});

describe('the contexts of a body', () => {
  it('are what it runs in, to its end', async () => {
    const storage = new AsyncLocalStorage<{ id: number }>();
    carryContext('request', storage);
    const body = async () => {
      await Promise.resolve();
      return storage.getStore()!.id;
    };
    expect(await run(body, { request: { id: 7 } })).toMatchObject({ value: 7 });
  });
});
