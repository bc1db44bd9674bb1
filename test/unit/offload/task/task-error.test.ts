import { BadRequestException, ConflictException, NotFoundException } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { ClusterUncloneableError } from '../../../../src/contract/errors/errors.js';
import {
  describeError,
  ownClassOf,
  restoreError,
} from '../../../../src/offload/task/task-error.js';

/** A value that a thread has thrown, as its caller gets it. */
const arrived = (thrown: unknown) => restoreError(structuredClone(describeError(thrown)));

class CatLimitException extends BadRequestException {
  readonly limit = 5;

  constructor(readonly cat: string) {
    super(`${cat} is too many`);
  }
}

class CatError extends RangeError {
  get code(): string {
    return 'CAT_LOST';
  }
}

const named = (name: string) => new { [name]: class extends Error {} }[name]!('x');
const withFields = (fields: PropertyDescriptorMap) =>
  Object.defineProperties(new Error('x'), fields);

it.each<[string, Error, { readonly prototype: object }, object]>([
  ['of Nest', new NotFoundException('x'), NotFoundException, { status: 404 }],
  [
    'of Nest with a body',
    new ConflictException({ message: ['a', 'b'], reason: 5 }),
    ConflictException,
    { status: 409, response: { message: ['a', 'b'], reason: 5 } },
  ],
  [
    'that extends one of Nest',
    new CatLimitException('Tom'),
    BadRequestException,
    { name: 'CatLimitException', message: 'Tom is too many', cat: 'Tom', limit: 5, status: 400 },
  ],
  [
    'of Nest with a body that cannot be copied',
    new BadRequestException({ message: 'no cats', retry: () => {} }),
    BadRequestException,
    { response: 'no cats' },
  ],
  ['with only a name of Nest', named('NotFoundException'), Error, { name: 'NotFoundException' }],
  ['of JavaScript', new TypeError('x'), TypeError, { name: 'TypeError', message: 'x' }],
  [
    'whose class has a code and no name',
    new CatError('x'),
    RangeError,
    { name: 'CatError', code: 'CAT_LOST', stack: expect.stringMatching(/^CatError: x\n +at /) },
  ],
  [
    'of this package',
    new ClusterUncloneableError('x'),
    ClusterUncloneableError,
    { name: 'ClusterUncloneableError', code: 'CLUSTER_UNCLONEABLE_VALUE', exitCode: 1 },
  ],
  [
    'of the platform',
    new DOMException('x', 'AbortError'),
    Error,
    { name: 'AbortError', message: 'x', code: 20 },
  ],
  [
    'of several',
    new AggregateError([new RangeError('a'), 'b'], 'all'),
    AggregateError,
    { message: 'all', errors: [new RangeError('a'), 'b'] },
  ],
])('an error %s arrives with its class and properties', (_, thrown, type, properties) => {
  const error = arrived(thrown) as Error;
  expect(Object.getPrototypeOf(error)).toBe(type.prototype);
  expect(error).toMatchObject(properties);
  const frames = (stack: string | undefined) => stack?.split('\n').slice(1);
  expect(frames(error.stack)).toEqual(frames(thrown.stack));
});

it('properties that cannot be copied are lost, and no others', () => {
  const fields = { code: Symbol('x'), retry: () => 1, kept: 1, toString: 'a text' };
  const error = arrived(Object.assign(new Error('x', { cause: () => 1 }), fields)) as Error;
  expect(Object.entries(error)).toEqual([
    ['kept', 1],
    ['toString', 'a text'],
  ]);
  expect(typeof error.cause).toBe('string');
});

describe('the cause of an error', () => {
  it('arrives with its class and its own cause', () => {
    const cause = new TypeError('b', { cause: new ConflictException('c') });
    const error = arrived(new Error('a', { cause })) as { cause: { cause: unknown } };
    expect(error.cause).toBeInstanceOf(TypeError);
    expect(error.cause.cause).toBeInstanceOf(ConflictException);
    expect((arrived(new Error('x', { cause: null })) as Error).cause).toBeNull();
    expect('cause' in (arrived(new Error('x')) as Error)).toBe(false);
  });

  it('may be circular', () => {
    const [a, b] = [new Error('a'), new Error('b')];
    a.cause = b;
    b.cause = a;
    const messages: string[] = [];
    for (let at = arrived(a) as Error; at !== undefined; at = at.cause as Error) {
      messages.push(at.message);
    }
    expect(messages.join('')).toBe('ababababa');
  });
});

it.each([['a text'], [null], [{ code: 5, rows: [1] }]])(
  'a thrown value that is no error arrives as it is: %j',
  (thrown) => {
    expect(arrived(thrown)).toEqual(thrown);
  },
);

it.each([
  ['a symbol', Symbol('cat'), 'Symbol(cat)'],
  ['an error that throws when it is read', broken(), 'Error: x'],
  ['an object without a prototype', Object.assign(Object.create(null), { f: () => 1 }), 'f:'],
])('a thrown value that cannot be copied arrives as text: %s', (_, thrown, words) => {
  expect(arrived(thrown)).toContain(words);
});

function broken(): Error {
  const get = () => {
    throw new Error('boom');
  };
  return withFields({ broken: { enumerable: true, get } });
}

describe('an error of a class of the app', () => {
  it('is an instance of its class if the class is known', () => {
    const described = describeError(new CatLimitException('tea'));
    const error = restoreError(structuredClone(described), CatLimitException);
    expect(error).toBeInstanceOf(CatLimitException);
    expect(error).toMatchObject({ name: 'CatLimitException', cat: 'tea', limit: 5 });
    expect(restoreError(described, class {} as never)).toBeInstanceOf(BadRequestException);
  });

  it('names its class, which an error of Nest, of this package or of JavaScript need not', () => {
    expect(ownClassOf(new CatError('x'))).toBe(CatError);
    for (const known of [
      new NotFoundException('x'),
      new TypeError('x'),
      new ClusterUncloneableError('x'),
      new DOMException('x'),
      'x',
    ]) {
      expect(ownClassOf(known)).toBeUndefined();
    }
  });
});
