import { NotFoundException } from '@nestjs/common';
import { EMPTY, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { ClusterUncloneableError } from '../../../../src/contract/errors/errors.js';
import {
  buffersIn,
  restoreBuffers,
  resultOf,
  runBody,
} from '../../../../src/offload/task/run-body.js';

/** Returns or throws what the caller of a body gets from a thread. */
async function run(body: () => unknown): Promise<unknown> {
  const result = await runBody('Cats.count', body, undefined);
  if (result.ok) return resultOf(structuredClone(result));
  return resultOf({ ...result, error: structuredClone(result.error) });
}

it.each<[string, () => unknown, unknown]>([
  ['a value', () => 5, 5],
  ['the last value of a promised Observable', async () => of(1, 2, 3), 3],
  ['an object that only looks like an Observable', () => ({ subscribe: 1 }), { subscribe: 1 }],
])('a body returns %s', async (_, body, value) => {
  expect(await run(body)).toEqual(value);
});

it.each<[string, () => unknown, string | typeof NotFoundException]>([
  ['it rejects', () => Promise.reject(new NotFoundException('x')), NotFoundException],
  ['its Observable is empty', () => EMPTY, 'no elements in sequence'],
])('a body fails if %s', async (_, body, error) => {
  await expect(run(body)).rejects.toThrow(error);
});

it.each<[string, () => unknown]>([
  ['a function', () => () => 1],
  ['a function in it', async () => ({ rows: [1, () => 1] })],
  ['a stream', () => ({ body: new ReadableStream() })],
])('a result that cannot be copied is a failure: %s', async (_, body) => {
  await expect(run(body)).rejects.toThrow(ClusterUncloneableError);
  await expect(run(body)).rejects.toThrow(
    /^Cats\.count: an argument or the result cannot be copied between threads: .+; pass and return plain data/,
  );
});

class Cat {
  name = 'Tom';
}

it.each<[string, unknown, string | undefined]>([
  ['an instance', new Cat(), 'Cat'],
  ['a list of instances', [new Cat()], 'Cat'],
  ['plain data', [{ cat: new Cat() }], undefined],
  ['a class of JavaScript', new Map([[1, new Date()]]), undefined],
  ['an object without a prototype', Object.create(null), undefined],
])('the class that is lost is named: of %s', async (_, value, className) => {
  const result = await runBody('Cats.count', () => value, undefined);
  expect(result).toEqual({ ok: true, value, buffers: [], ...(className && { className }) });
});

describe('a Buffer', () => {
  const sent = (values: unknown[]) => restoreBuffers(structuredClone(values), buffersIn(values));

  it.each<[string, unknown[]]>([
    ['as an argument', [1, Buffer.from('é'), 2]],
    ['as a property', [{ name: 'x', image: Buffer.from('é') }]],
    ['as an element', [[Buffer.from('é'), 'x', Buffer.from('a')]]],
    ['as a part of another', [Buffer.from('abcdef').subarray(2, 4)]],
  ])('arrives as a Buffer %s', (_, values) => {
    const arrived = sent(values);
    expect(arrived).toEqual(values);
    const flat = [...arrived, ...arrived.flatMap((each) => Object.values(each as object))];
    expect(flat.some((each) => Buffer.isBuffer(each))).toBe(true);
  });

  it('arrives as a Uint8Array if it is nested more deeply, and a Uint8Array stays one', () => {
    const [arrived, array] = sent([{ a: { b: Buffer.from('x') } }, new Uint8Array(2)]);
    expect(arrived).toEqual({ a: { b: new Uint8Array(Buffer.from('x')) } });
    expect(array).toEqual(new Uint8Array(2));
  });

  it('is not looked for by the keys of a long list', () => {
    const keys: unknown[] = [];
    const ownKeys = (target: object) => {
      keys.push(target);
      return Reflect.ownKeys(target);
    };
    expect(buffersIn([new Proxy([1, 2, 3], { ownKeys }), null, undefined, 'x'])).toEqual([]);
    expect(keys).toEqual([]);
  });
});
