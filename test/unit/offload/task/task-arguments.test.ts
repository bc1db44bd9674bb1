import { describe, expect, it } from 'vitest';
import { ClusterUncloneableError } from '../../../../src/contract/errors/index.js';
import {
  keyOf,
  parameterNames,
  uncloneableArguments,
} from '../../../../src/offload/task/arguments.js';
import { TASK } from '../../support/fake-runner.js';

const key = (...args: unknown[]) => keyOf(TASK, args);

describe('the key of a call', () => {
  it.each([
    ['no arguments', () => []],
    ['plain values', () => [1, 'a', true, null, undefined, 1n, NaN]],
    ['objects', () => [{ a: { b: [1, 2] } }]],
    ['bytes', () => [new Uint8Array([1, 2]), Buffer.from('x')]],
    ['dates, maps and sets', () => [new Date(3), new Map([[1, { a: 2 }]]), new Set(['x'])]],
    ['a long text', () => ['x'.repeat(100_000)]],
    [
      'an instance of a class',
      () => [
        new (class Cat {
          name = 'Tom';
        })(),
      ],
    ],
  ])('is the same for equal arguments: %s', (_, args: () => unknown[]) => {
    expect(key(...args())).toBe(key(...args()));
  });

  it('is another for each of these', () => {
    const lists: unknown[][] = [
      [],
      [undefined],
      [null],
      [0],
      [-0],
      [''],
      ['0'],
      [false],
      [0n],
      [[]],
      [{}],
      [[0]],
      [0, 0],
      ['a', 'bc'],
      ['ab', 'c'],
      [{ a: 1 }],
      [{ a: 2 }],
      [{ b: 1 }],
      [new Date(1)],
      [new Date(2)],
      [new Map([['a', 1]])],
      [Buffer.from('a')],
      [Buffer.from('b')],
      ['x'.repeat(1_000)],
      [`${'x'.repeat(999)}y`],
    ];
    expect(new Set(lists.map((list) => key(...list))).size).toBe(lists.length);
  });

  it('is another for another task', () => {
    const long = 'x'.repeat(1_000);
    for (const args of [[], [1], [long]]) {
      expect(keyOf({ ...TASK, index: 1 }, args)).not.toBe(keyOf({ ...TASK, index: 11 }, args));
    }
  });

  it('does not hold the arguments a second time', () => {
    expect(key('x'.repeat(10_000_000)).length).toBeLessThan(300);
    expect(key(Buffer.alloc(1_000_000)).length).toBeLessThan(300);
  });

  it.each([
    ['a function', { f: () => 1 }],
    ['a symbol', Symbol('x')],
    ['a promise', Promise.resolve()],
  ])('cannot be had of %s', (_, arg) => {
    expect(() => key(arg)).toThrow(/could not be cloned/);
  });
});

describe('arguments that cannot be copied', () => {
  const messageFor = (args: unknown[], parameters: string[] = []) =>
    uncloneableArguments(
      { ...TASK, parameters },
      { args, contexts: undefined },
      new Error('refused'),
    ).message;

  it('are told by number and name of the parameter', () => {
    expect(messageFor([1, { f: () => 1 }], ['count', 'options'])).toBe(
      'Cats.count: the arguments cannot be copied to a thread: argument 2 (options).f is a function; ' +
        'pass plain data (what structuredClone() takes)',
    );
  });

  it('are told by number alone where the name is not known', () => {
    expect(messageFor([1, Symbol('x')], ['count'])).toContain(': argument 2 is a symbol;');
  });

  it('are told by the first that is in the way', () => {
    expect(messageFor([1, Symbol('x'), () => 1])).toContain('argument 2 is a symbol');
  });

  it('are told by the words of the refusal where nothing is found in them', () => {
    expect(messageFor([1])).toContain(': Error: refused; pass plain data');
  });

  it('may be a context that travels with them', () => {
    const contexts = { request: { id: 7, log: () => 1 } };
    expect(uncloneableArguments(TASK, { args: [1], contexts }, new Error('x')).message).toContain(
      'the carried context "request".log is a function',
    );
  });

  it('keep the refusal as cause, and have their code', () => {
    const cause = new Error('refused');
    const error = uncloneableArguments(TASK, { args: [], contexts: undefined }, cause);
    expect(error).toBeInstanceOf(ClusterUncloneableError);
    expect(error).toMatchObject({ cause, code: 'CLUSTER_UNCLONEABLE_VALUE' });
  });

  it('may throw where they are read', () => {
    const arg = {
      get broken(): never {
        throw new Error('boom');
      },
    };
    expect(messageFor([arg])).toContain('the arguments cannot be copied to a thread');
  });
});

/** A method as it is emitted. */
const emitted = (source: string) =>
  Object.values(
    // eslint-disable-next-line typescript/no-implied-eval
    new Function(`return { ${source} }`)() as Record<string, (...args: never[]) => unknown>,
  )[0]!;

describe('names of parameters', () => {
  it.each([
    ['tsc, ES2023', 'async count(first, second) { return first; }', ['first', 'second']],
    ['tsc, not async', 'count(first, second) { return first; }', ['first', 'second']],
    [
      'tsc, ES2015',
      'count(first, second) { return __awaiter(this, void 0, void 0, function* () { return first; }); }',
      ['first', 'second'],
    ],
    [
      'tsc, ES5',
      'count: function (first, second) { return __awaiter(this, void 0, void 0, function () {}); }',
      ['first', 'second'],
    ],
    [
      'SWC, ES5',
      'count: function count(first, second) { return _async_to_generator(function() {})(); }',
      ['first', 'second'],
    ],
    ['SWC, minified', 'async count(a,b){return a}', ['a', 'b']],
    ['several lines', 'async count(\n    first,\n    second,\n  ) {}', ['first', 'second']],
    ['none', 'async count() {}', []],
    ['a generator', '*count(first) {}', ['first']],
    ['signs', 'count($a, _b, c1) {}', ['$a', '_b', 'c1']],
    ['a default', 'count(first, second = 5) {}', ['first', 'second']],
    ['a body with brackets', 'count(first) { return (second, third) => first; }', ['first']],
  ])('are read from what compilers emit: %s', (_, source, names) => {
    expect(parameterNames(emitted(source))).toEqual(names);
  });

  it.each([
    ['a pattern', 'count(first, { a, b }, last) {}', ['first']],
    ['a pattern at the beginning', 'count({ a }, last) {}', []],
    ['a list', 'count(first, [a, b], last) {}', ['first']],
    ['a rest', 'count(first, ...others) {}', ['first']],
    ['a default that is called', 'count(first = make(1), second) {}', ['first']],
    ['a default that is a text', "count(first = 'x', second) {}", ['first']],
  ])('are known as far as they are plain: %s', (_, source, names) => {
    expect(parameterNames(emitted(source))).toEqual(names);
  });

  it.each([
    ['a list', 'count(first = [x, y, z], second) {}'],
    ['an object', 'count(first = { x, y, z }, second) {}'],
    ['a text', "count(first = 'x, y, z', second) {}"],
  ])('are not taken from a default that is %s', (_, source) => {
    expect(['first', 'second']).toEqual(expect.arrayContaining(parameterNames(emitted(source))));
  });

  it('are none where nothing can be read', () => {
    expect(parameterNames(Math.max)).toEqual([]);
    expect(parameterNames(emitted('count(a) {}').bind(null))).toEqual([]);
  });
});
