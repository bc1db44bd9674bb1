import {
  BadRequestException,
  ConflictException,
  HttpException,
  HttpStatus,
  NotFoundException,
} from '@nestjs/common';
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { ClusterUncloneableError } from '../../../../src/contract/errors/index.js';
import type { Class } from '../../../../src/contract/options/module.js';
import { describeError, restoreError } from '../../../../src/offload/task/task-error.js';

/** An error thrown in a thread, as its caller gets it. */
const arrived = (thrown: unknown) => restoreError(structuredClone(describeError(thrown)));

class CatLimitException extends BadRequestException {
  readonly limit = 5;

  constructor(readonly cat: string) {
    super(`${cat} is too many`);
  }
}

class TeapotException extends HttpException {
  constructor() {
    super({ kind: 'teapot' }, HttpStatus.I_AM_A_TEAPOT);
  }
}

describe('an exception of Nest', () => {
  it.each([
    ['with a message', new NotFoundException('no such cat')],
    ['with a body', new ConflictException({ message: ['a', 'b'], reason: 5 })],
    ['bare', new HttpException('gone', 410)],
    ['with a description', new BadRequestException('x', { description: 'y' })],
    ['with a cause', new BadRequestException('x', { cause: new RangeError('deep') })],
  ])('arrives as it was thrown: %s', (_, thrown) => {
    const error = arrived(thrown) as HttpException;
    expect(error).toBeInstanceOf(thrown.constructor);
    expect(error.getStatus()).toBe(thrown.getStatus());
    expect(error.getResponse()).toEqual(thrown.getResponse());
    expect(error).toMatchObject({
      name: thrown.name,
      message: thrown.message,
      stack: thrown.stack,
    });
  });

  it('keeps its cause', () => {
    const { cause } = arrived(
      new BadRequestException('x', { cause: new RangeError('deep') }),
    ) as Error;
    expect(cause).toBeInstanceOf(RangeError);
    expect((cause as Error).message).toBe('deep');
  });

  it('is one also where an app has extended it, with its own fields', () => {
    const error = arrived(new CatLimitException('Tom')) as CatLimitException;
    expect(error).toBeInstanceOf(BadRequestException);
    expect(error.getStatus()).toBe(400);
    expect(error).toMatchObject({ name: 'CatLimitException', cat: 'Tom', limit: 5 });
  });

  it('is one also where an app has extended the base', () => {
    const error = arrived(new TeapotException()) as HttpException;
    expect(error).toBeInstanceOf(HttpException);
    expect([error.getStatus(), error.getResponse()]).toEqual([418, { kind: 'teapot' }]);
    expect(error.name).toBe('TeapotException');
  });

  it('has a body that says something also where its own cannot be copied', () => {
    const thrown = new BadRequestException({ message: 'no cats', retry: () => {} });
    const error = arrived(thrown) as HttpException;
    expect(error.getStatus()).toBe(400);
    expect(error.getResponse()).toEqual(error.message);
  });

  it.each(['NotFoundException', 'ConflictException', 'HttpException'])(
    'is not what an error is that has no more than its name: %s',
    (name) => {
      const Domain = { [name]: class extends Error {} }[name]!;
      const error = arrived(Object.assign(new Domain('no such cat'), { name })) as Error;
      expect(error).not.toBeInstanceOf(HttpException);
      expect(error).toMatchObject({ name, message: 'no such cat' });
    },
  );

  it('is not what an error is that has the name of another export of Nest', () => {
    class Logger extends Error {}
    const error = arrived(new Logger('x'));
    expect(error).toBeInstanceOf(Error);
    expect(Object.getPrototypeOf(error)).toBe(Error.prototype);
  });
});

describe('an error', () => {
  it.each([
    new Error('x'),
    new RangeError('x'),
    new TypeError('x'),
    new SyntaxError('x'),
    new ReferenceError('x'),
    new EvalError('x'),
    new URIError('x'),
  ])('of JavaScript keeps its class: %s', (thrown) => {
    const error = arrived(thrown) as Error;
    expect(Object.getPrototypeOf(error)).toBe(Object.getPrototypeOf(thrown));
    expect(error).toMatchObject({ name: thrown.name, message: 'x', stack: thrown.stack });
    expect(Object.keys(error)).toEqual([]);
  });

  it.each([Error, RangeError, AggregateError])(
    'of a class that gives it no name is known by that of the class: of %o',
    (Base) => {
      class CatError extends (Base as typeof Error) {}
      const given = Base === AggregateError ? [[], 'x'] : ['x'];
      const thrown = new CatError(...(given as [string]));
      const error = arrived(thrown) as Error;
      expect(error).toBeInstanceOf(Base);
      expect(error.name).toBe('CatError');
      expect(error.stack).toMatch(/^CatError: x\n/);
      expect(error.stack!.split('\n').slice(1)).toEqual(thrown.stack!.split('\n').slice(1));
      expect(inspect(error)).toContain('CatError');
    },
  );

  it.each([
    ['no class name', new (class extends Error {})('x'), 'Error'],
    [
      'a name of its own',
      Object.assign(new (class CatError extends Error {})('x'), { name: 'Dog' }),
      'Dog',
    ],
    [
      'a name of its class',
      new (class CatError extends Error {
        override get name() {
          return 'Dog';
        }
      })('x'),
      'Dog',
    ],
    ['the name of an abort', new DOMException('x', 'AbortError'), 'AbortError'],
  ])('keeps the name that it has with %s', (_, thrown, name) => {
    expect(arrived(thrown)).toMatchObject({ name, message: 'x' });
  });

  it('keeps name, code, cause and what it carries', () => {
    class CatError extends Error {
      override name = 'CatError';
      readonly code = 'CAT_LOST';
      readonly lives = { left: 3, at: new Date(5) };
    }
    const error = arrived(new CatError('where', { cause: 'the dog' })) as CatError;
    expect(Object.getPrototypeOf(error)).toBe(Error.prototype);
    expect(error).toMatchObject({
      name: 'CatError',
      message: 'where',
      code: 'CAT_LOST',
      lives: { left: 3, at: new Date(5) },
      cause: 'the dog',
    });
    expect(error.stack).toContain('task-error.test');
  });

  it('keeps a code that only its class has', () => {
    class CatError extends Error {
      get code(): string {
        return 'CAT_LOST';
      }
    }
    expect(arrived(new CatError('x'))).toMatchObject({ code: 'CAT_LOST' });
    expect(arrived(new ClusterUncloneableError('x'))).toMatchObject({
      name: 'ClusterUncloneableError',
      code: 'CLUSTER_UNCLONEABLE_VALUE',
      exitCode: 1,
    });
  });

  it('of the system keeps what it is known by', () => {
    const thrown = Object.assign(new Error('ENOENT: no such file'), {
      errno: -2,
      code: 'ENOENT',
      syscall: 'open',
      path: '/cats',
    });
    expect(arrived(thrown)).toMatchObject({
      errno: -2,
      code: 'ENOENT',
      syscall: 'open',
      path: '/cats',
    });
  });

  it('loses what cannot be copied, and nothing else', () => {
    const thrown = Object.assign(new Error('x', { cause: () => 1 }), {
      code: Symbol('x'),
      retry: () => 1,
      kept: 1,
      [Symbol('y')]: 2,
    });
    const error = arrived(thrown) as Error;
    expect(Object.entries(error)).toEqual([['kept', 1]]);
    expect(typeof error.cause).toBe('string');
  });

  it('has no cause where there was none', () => {
    expect('cause' in (arrived(new Error('x')) as Error)).toBe(false);
    expect((arrived(new Error('x', { cause: null })) as Error).cause).toBeNull();
  });

  it('keeps its causes, each with its class', () => {
    const thrown = new Error('a', {
      cause: new TypeError('b', { cause: new ConflictException('c') }),
    });
    const error = arrived(thrown) as { cause: { cause: unknown } };
    expect(error.cause).toBeInstanceOf(TypeError);
    expect(error.cause.cause).toBeInstanceOf(ConflictException);
  });

  it('may be its own cause: some of that arrive', () => {
    const [a, b] = [new Error('a'), new Error('b')];
    a.cause = b;
    b.cause = a;
    let depth = 0;
    for (let at = arrived(a) as Error; at !== undefined; at = at.cause as Error) {
      expect(at.message).toBe(depth % 2 === 0 ? 'a' : 'b');
      depth += 1;
    }
    expect(depth).toBeGreaterThan(2);
    expect(depth).toBeLessThan(20);
  });

  it('may hold itself', () => {
    const thrown = Object.assign(new Error('x'), { self: {} as unknown });
    thrown.self = thrown;
    expect((arrived(thrown) as Error).message).toBe('x');
  });

  it('of several keeps them, as far as they can be copied', () => {
    const error = arrived(new AggregateError([new RangeError('a'), 'b'], 'all')) as AggregateError;
    expect(error).toBeInstanceOf(AggregateError);
    expect(error.message).toBe('all');
    expect(error.errors).toMatchObject([{ message: 'a' }, 'b']);
    expect(error.errors[0]).toBeInstanceOf(RangeError);
    expect((arrived(new AggregateError([() => 1], 'all')) as AggregateError).errors).toBe(
      undefined,
    );
  });

  it('of the platform keeps its name and code', () => {
    const error = arrived(new DOMException('stop', 'AbortError'));
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({ name: 'AbortError', message: 'stop', code: 20 });
  });

  it('may have lost its stack, its name, or its message', () => {
    const thrown = new Error('x');
    delete thrown.stack;
    Object.defineProperty(thrown, 'name', { value: 5 });
    Object.defineProperty(thrown, 'message', { value: undefined });
    expect(arrived(thrown)).toMatchObject({ name: '5', message: 'undefined' });
  });

  it('may have fields that cannot be set where it arrives', () => {
    const thrown = Object.assign(new Error('x'), { toString: 'a text', constructor: 1 });
    expect({ ...(arrived(thrown) as object) }).toEqual({ toString: 'a text', constructor: 1 });
  });

  it('does not reach the prototype of errors by one of its fields', () => {
    const thrown = new Error('x');
    Object.defineProperty(thrown, '__proto__', { value: { evil: 1 }, enumerable: true });
    const error = arrived(thrown) as Error;
    expect(error).toBeInstanceOf(Error);
    expect('evil' in error).toBe(false);
  });

  it('may throw when it is looked at', () => {
    const thrown = new Error('x');
    Object.defineProperty(thrown, 'broken', {
      enumerable: true,
      get() {
        throw new Error('boom');
      },
    });
    expect(inspect(arrived(thrown))).toContain('Error: x');
  });
});

function detached(): ArrayBuffer {
  const buffer = new ArrayBuffer(1);
  structuredClone(buffer, { transfer: [buffer] });
  return buffer;
}

describe('what is thrown and is no error', () => {
  it.each([
    ['a text'],
    [5],
    [0],
    [''],
    [null],
    [undefined],
    [true],
    [{ code: 5, rows: [1] }],
    [['a']],
  ])('arrives as it was: %j', (thrown) => {
    expect(arrived(thrown)).toEqual(thrown);
  });

  it.each([
    [Symbol('cat'), 'Symbol(cat)'],
    [{ f: () => 1 }, '{ f: [Function: f] }'],
    [[() => 1], '[ [Function (anonymous)] ]'],
    [detached(), inspect(detached())],
  ])('arrives in words where it cannot be copied: %o', (thrown, words) => {
    expect(arrived(thrown)).toBe(words);
  });

  it('may have no words either', () => {
    const thrown = Object.assign(Object.create(null) as object, { f: () => 1 });
    expect(typeof arrived(thrown)).toBe('string');
  });
});

describe('an error of a class of the app', () => {
  class PricingError extends Error {
    constructor(readonly article: string) {
      super(`no price for ${article}`, { cause: new CatLimitException('Tom') });
    }
    get words(): string {
      return `${this.article}!`;
    }
  }

  it('is an instance of its class, and so are its causes, if this process knows the classes', () => {
    const types: Class[] = [];
    const described = structuredClone(describeError(new PricingError('tea'), types));
    expect(types).toEqual([PricingError, CatLimitException]);

    const error = restoreError(described, types) as PricingError;
    expect(error).toBeInstanceOf(PricingError);
    expect(error.words).toBe('tea!');
    expect(error).toMatchObject({ name: 'PricingError', message: 'no price for tea' });
    expect(error.cause).toBeInstanceOf(CatLimitException);

    const unknown = restoreError(described, [undefined, class {}]) as PricingError;
    expect(unknown).not.toBeInstanceOf(PricingError);
    expect(unknown.name).toBe('PricingError');
    expect(unknown.cause).toBeInstanceOf(BadRequestException);
  });

  it('has no number if it is one of Nest, of this package or of JavaScript', () => {
    const types: Class[] = [];
    const known = [
      new NotFoundException('x'),
      new TypeError('x'),
      new ClusterUncloneableError('x'),
    ];
    describeError(new AggregateError(known, 'x'), types);
    expect(types).toEqual([]);
  });
});
