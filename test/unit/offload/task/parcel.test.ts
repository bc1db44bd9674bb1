import { describe, expect, it } from 'vitest';
import { isMoved, move } from '../../../../src/offload/admission/move.js';
import { contentsOf, restoreBuffers } from '../../../../src/offload/task/parcel.js';

/** The values as they arrive, if they are sent correctly. */
function sent(values: unknown[]): unknown[] {
  const { moved, buffers } = contentsOf(values);
  return restoreBuffers(structuredClone(values, { transfer: moved }), buffers);
}

describe('move()', () => {
  it('marks the whole of a buffer, and gives the same value back', () => {
    const bytes = new Uint8Array(8);
    expect(move(bytes)).toBe(bytes);
    expect(isMoved(bytes.buffer)).toBe(true);
    const buffer = new ArrayBuffer(8);
    expect(move(buffer)).toBe(buffer);
    expect(isMoved(buffer)).toBe(true);
  });

  it.each([
    ['a view of a part', new Uint8Array(8).subarray(2)],
    ['a Buffer of the pool', Buffer.from('small')],
    ['shared memory', new Uint8Array(new SharedArrayBuffer(8))],
  ])('leaves %s to be copied: the rest would go with it', (_, view) => {
    move(view);
    expect(isMoved(view.buffer)).toBe(false);
    expect(sent([view])).toEqual([view]);
    expect(view.byteLength).toBeGreaterThan(0);
  });

  it('may be called twice, and on what is empty', () => {
    const bytes = new Uint8Array(2);
    expect(move(move(bytes))).toBe(bytes);
    expect(sent([move(new Uint8Array(0))])).toEqual([new Uint8Array(0)]);
  });

  it('is not what a buffer is unless it is asked for', () => {
    expect(isMoved(new ArrayBuffer(8))).toBe(false);
  });

  it.each([
    ['an argument', (bytes: Uint8Array) => [1, bytes]],
    ['a property of one', (bytes: Uint8Array) => [{ image: bytes }]],
    ['an entry of one', (bytes: Uint8Array) => [['x', bytes]]],
    ['its buffer alone', (bytes: Uint8Array) => [bytes.buffer]],
    ['twice the same', (bytes: Uint8Array) => [bytes, { bytes }, bytes.buffer]],
  ])('has it moved where it is %s', (_, around) => {
    const bytes = move(new Uint8Array([1, 2, 3]));
    const arrived = sent(around(bytes));
    expect(bytes.byteLength).toBe(0);
    expect(arrived).toEqual(around(new Uint8Array([1, 2, 3])));
  });

  it('has it copied where it lies deeper', () => {
    const bytes = move(new Uint8Array([1, 2, 3]));
    expect(sent([{ a: { b: bytes } }])).toEqual([{ a: { b: bytes } }]);
    expect(bytes.byteLength).toBe(3);
  });

  it('does not hold for what has arrived', () => {
    const [arrived] = sent([move(new Uint8Array([1]))]) as [Uint8Array];
    sent([arrived]);
    expect(arrived.byteLength).toBe(1);
  });
});

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

  it('is one again in a sparse list of enormous length', () => {
    const list: unknown[] = [];
    list[2 ** 31] = Buffer.from('é');
    const [arrived] = sent([list]) as [unknown[]];
    expect(String(arrived[2 ** 31])).toBe('é');
  });

  it('is one again where it was moved', () => {
    const image = move(Buffer.alloc(10_000, 'x'));
    const [arrived] = sent([{ image }]) as [{ image: Buffer }];
    expect(image.byteLength).toBe(0);
    expect(arrived.image.toString('latin1')).toBe('x'.repeat(10_000));
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
      expect(contentsOf(values)).toEqual({ moved: [], buffers: [] });
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
    contentsOf([numbers]);
    expect(reads).toEqual([]);
  });
});
