import { describe, expect, it } from 'vitest';
import { buffersIn, restoreBuffers } from '../../../../src/offload/task/buffers.js';

/** The values as they arrive, if they are sent correctly. */
function sent(values: unknown[]): unknown[] {
  return restoreBuffers(structuredClone(values), buffersIn(values));
}

describe('a Buffer', () => {
  it.each([
    ['an argument', [1, Buffer.from('é'), 2]],
    ['a property of one', [{ name: 'x', image: Buffer.from('é') }]],
    ['an entry of one', [[Buffer.from('é'), 'x', Buffer.from('a')]]],
    ['empty', [Buffer.alloc(0)]],
    ['large', [Buffer.alloc(100_000, 'x')]],
    ['a part of another', [Buffer.from('abcdef').subarray(2, 4)]],
  ])('is one again where it is %s', (_, values) => {
    const arrived = sent(values);
    expect(arrived).toEqual(values);
    const flat = [...arrived, ...arrived.flatMap((each) => Object.values(each as object))];
    expect(flat.some((each) => Buffer.isBuffer(each))).toBe(true);
  });

  it('is a bare Uint8Array where it lies deeper', () => {
    const [arrived] = sent([{ a: { b: Buffer.from('x') } }]) as [{ a: { b: Uint8Array } }];
    expect(Buffer.isBuffer(arrived.a.b)).toBe(false);
    expect(arrived.a.b).toEqual(new Uint8Array(Buffer.from('x')));
  });

  it('is not what a Uint8Array becomes', () => {
    expect(Buffer.isBuffer(sent([new Uint8Array(2)])[0])).toBe(false);
  });
});

describe('what is neither', () => {
  it.each([[[]], [[1, 'x', undefined]], [[null]], [[{ a: 1 }, [1, 2], null]], [[() => 1]]])(
    'has nothing to be told of: %j',
    (values) => {
      expect(buffersIn(values)).toEqual([]);
    },
  );

  it('is not looked through entry by entry where it is a long list', () => {
    const reads: PropertyKey[] = [];
    const numbers = new Proxy(
      Array.from({ length: 10_000 }, () => 1),
      {
        ownKeys: (target) => {
          reads.push('keys');
          return Reflect.ownKeys(target);
        },
      },
    );
    buffersIn([numbers]);
    expect(reads).toEqual([]);
  });
});
