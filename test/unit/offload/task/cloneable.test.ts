import { runInThisContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { findUncloneable } from '../../../../src/offload/task/cloneable.js';

const found = (value: unknown) => findUncloneable(value, 'it');

const isRefused = (value: unknown): boolean => {
  try {
    structuredClone(value);
    return false;
  } catch {
    return true;
  }
};

class Cat {
  name = 'Tom';
  purr(): void {}
}

const CIRCLE: Record<string, unknown> = { list: [] };
CIRCLE['self'] = CIRCLE;
(CIRCLE['list'] as unknown[]).push(CIRCLE);

describe('what can be copied', () => {
  it.each([
    ['undefined', undefined],
    ['null', null],
    ['a number', 1],
    ['a text', 'x'],
    ['a bigint', 1n],
    ['an object', { a: { b: [1, 'x', null] } }],
    ['an instance of a class with methods', new Cat()],
    ['an object without a prototype', Object.assign(Object.create(null) as object, { a: 1 })],
    ['a circle', CIRCLE],
    [
      'bytes',
      [Buffer.from('x'), new Uint8Array(2), new ArrayBuffer(2), new DataView(new ArrayBuffer(2))],
    ],
    ['shared memory', new SharedArrayBuffer(2)],
    ['dates and patterns', [new Date(), /x/g]],
    ['boxed values', [Object(1), Object('x'), Object(true)]],
    ['maps and sets', [new Map([[{ a: 1 }, new Set([1])]])]],
    ['errors, also with methods of their own', Object.assign(new Error('x'), { f: () => 1 })],
    ['an error with a cause', new Error('x', { cause: { a: 1 } })],
    [
      'properties that are not copied: by symbol, or not enumerable',
      Object.defineProperty({ [Symbol('x')]: () => 1 }, 'f', { value: () => 1 }),
    ],
    ['sparse lists', Object.assign([], { 1: 1, length: 3 }) as unknown],
  ])('has nothing in it that is in the way: %s', (_, value) => {
    expect(isRefused(value)).toBe(false);
    expect(found(value)).toBeUndefined();
  });
});

describe('what cannot be copied', () => {
  const f = () => 1;
  it.each([
    ['it is a function', f],
    ['it is a function', Cat],
    ['it is a symbol', Symbol('x')],
    ['it is a promise', Promise.resolve(1)],
    ['it is a Proxy', new Proxy({}, {})],
    ['it is a WeakMap', new WeakMap()],
    ['it is a WeakSet', new WeakSet()],
    ['it is a WeakRef', new WeakRef({})],
    ['it.a.b is a function', { a: { b: f } }],
    ['it[1] is a function', [1, f]],
    ['it.rows[2].f is a function', { rows: [{}, {}, { f }] }],
    [
      'entry 1 of it is a function',
      new Map<string, unknown>([
        ['a', 1],
        ['b', f],
      ]),
    ],
    ['key 0 of it is a symbol', new Map([[Symbol('x'), 1]])],
    ['entry 0 of it.tags is a promise', { tags: new Set([Promise.resolve()]) }],
    ['it.cause is a function', new Error('x', { cause: f })],
    ['it.cause.f is a function', new TypeError('x', { cause: { f } })],
    ['it.cat.run is a function', { cat: Object.assign(new Cat(), { run: f }) }],
  ])('is told by its place: %s', (words, value) => {
    expect(isRefused(value)).toBe(true);
    expect(found(value)).toBe(words);
  });

  it('is found behind a circle', () => {
    const circle: Record<string, unknown> = {};
    circle['self'] = circle;
    circle['f'] = f;
    expect(found(circle)).toBe('it.f is a function');
  });

  it('is found however deep it is', () => {
    let deep: unknown = f;
    for (let i = 0; i < 1_000; i += 1) deep = [deep];
    expect(found(deep)).toMatch(/\[0\] is a function$/);
  });

  it.each([1_100, 100_000])('is told where it is nested too deeply: %i levels', (levels) => {
    let deep: unknown = {};
    for (let i = 0; i < levels; i += 1) deep = i % 2 === 0 ? [deep] : { deep };
    expect(found({ deep })).toBe('it is nested too deeply (more than 1000 levels)');
  });

  it('is as deep as structured clone goes: a graph in the order of its parts', () => {
    const chain = Array.from({ length: 20_000 }, () => ({ next: undefined as unknown }));
    chain.forEach((node, i) => (node.next = chain[i + 1]));
    expect(isRefused(chain)).toBe(true);
    expect(found(chain)).toContain('nested too deeply');
    chain.reverse();
    expect(isRefused(chain)).toBe(false);
    expect(found(chain)).toBeUndefined();
  });

  it('is an error that is its own cause, where this Node cannot read it', () => {
    const error = new Error('x');
    error.cause = { error };
    const words = isRefused(error) ? 'it has an error that is its own cause' : undefined;
    expect(found([error])).toBe(words);
  });

  it.each([
    [
      'a generator',
      (function* () {
        yield 1;
      })(),
    ],
    ['an iterator', new Map().entries()],
    ['an iterator of a set', new Set().values()],
    ['arguments', (runInThisContext('(function () { return arguments; })') as () => unknown)()],
    ['a formatter', new Intl.NumberFormat('en')],
    ['a boxed symbol', Object(Symbol('x'))],
    ['a stream', new ReadableStream()],
    ['a port', new MessageChannel().port1],
  ])('is found where it is no plain data: %s', (_, value: unknown) => {
    expect(isRefused(value)).toBe(true);
    expect(found({ value })).toMatch(/^it\.value is /);
  });

  it('is found where its buffer has been moved away', () => {
    const bytes = new Uint8Array(4);
    structuredClone(bytes, { transfer: [bytes.buffer] });
    expect(isRefused(bytes)).toBe(true);
    expect(found({ bytes })).toMatch(/^it\.bytes is /);
    expect(found([bytes.buffer])).toBe('it[0] is a [object ArrayBuffer]');
  });

  it('is found in a sparse list of enormous length', () => {
    const list: unknown[] = [];
    list[2 ** 31] = f;
    expect(found({ list })).toBe('it.list.2147483648 is a function');
  });

  it('is told also where reading it throws', () => {
    const value = {
      get broken(): never {
        throw new Error('boom');
      },
    };
    expect(isRefused(value)).toBe(true);
    expect(found({ value })).toMatch(/^it\.value/);
  });
});
