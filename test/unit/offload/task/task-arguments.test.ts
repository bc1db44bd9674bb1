import { describe, expect, it } from 'vitest';
import { ClusterUncloneableError } from '../../../../src/contract/errors/index.js';
import { parameterNames, uncloneableArguments } from '../../../../src/offload/task/arguments.js';
import { TASK } from '../../support/fake-runner.js';

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
