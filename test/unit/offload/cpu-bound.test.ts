import 'reflect-metadata';
import { describe, expect, it } from 'vitest';
import { ClusterConfigurationError } from '../../../src/contract/errors/errors.js';
import { CpuBound, definitionsOf } from '../../../src/offload/cpu-bound.decorator.js';

class Cats {
  readonly name = 'Tom';

  @CpuBound({ timeoutMs: 5 })
  count(first: number, second = 2, ...others: number[]): string {
    return `${this.name} ${first + second + others.length}`;
  }

  plain(): void {}
}

describe('a method with @CpuBound()', () => {
  it('runs directly if nothing offloads it, as in a unit test of its class', () => {
    expect([new Cats().count(1), new Cats().count(1, 2, 3)]).toEqual(['Tom 3', 'Tom 4']);
  });

  it('keeps its name, its length, and its attributes as a property', () => {
    const plain = Object.getOwnPropertyDescriptor(Cats.prototype, 'plain')!;
    const count = Object.getOwnPropertyDescriptor(Cats.prototype, 'count')!;
    expect(count).toMatchObject({ ...plain, value: count.value as unknown });
    expect([Cats.prototype.count.name, Cats.prototype.count.length]).toEqual(['count', 1]);
    expect(Object.keys(Cats.prototype)).toEqual([]);
  });

  it('leaves decorators that wrap in the caller if they are above it', () => {
    const Twice: MethodDecorator = (_target, _key, descriptor) => {
      const inner = descriptor.value as unknown as () => number;
      return { ...descriptor, value: (() => 2 * inner()) as never };
    };
    class Dogs {
      @Twice
      @CpuBound()
      above(): number {
        return 1;
      }

      @CpuBound()
      @Twice
      below(): number {
        return 1;
      }
    }
    expect(definitionsOf(Dogs.prototype).map(({ body }) => body())).toEqual([1, 2]);
    expect([new Dogs().above(), new Dogs().below()]).toEqual([2, 2]);
  });
});

it('a class has its own methods, and those that it inherits and does not override', () => {
  class Animals {
    @CpuBound()
    count(): string {
      return 'animals';
    }

    @CpuBound()
    weigh(): string {
      return 'animals';
    }
  }
  class Lions extends Animals {
    @CpuBound()
    override count(): string {
      return `lions and ${super.count()}`;
    }
  }
  class Dogs extends Animals {
    override count(): string {
      return 'dogs';
    }
  }
  const methodsOf = (type: { prototype: object }) =>
    definitionsOf(type.prototype).map(({ method, owner }) => [method, owner]);
  const inherited = ['weigh', Animals.prototype];
  expect(methodsOf(Animals)).toEqual([['count', Animals.prototype], inherited]);
  expect(methodsOf(Lions)).toEqual([['count', Lions.prototype], inherited]);
  expect(methodsOf(Dogs)).toEqual([inherited]);
  expect(new Lions().count()).toBe('lions and animals');
});

describe('@CpuBound() is refused', () => {
  const symbol = Symbol('count');
  class Places {
    static fixed(): void {}
    [symbol](): void {}
    get getter(): number {
      return 1;
    }
    method(): void {}
  }
  const on = (target: object, key: string | symbol, options?: object) => () =>
    CpuBound(options)(target, key, Object.getOwnPropertyDescriptor(target, key)!);
  // @ts-expect-error: the types refuse it too.
  void (() => CpuBound({ timeoutMs: '1' }));
  const standard = CpuBound() as unknown as (value: unknown, context: object) => unknown;

  it.each<[string, () => unknown, RegExp]>([
    [
      'on a static method',
      on(Places, 'fixed'),
      /^Places\.fixed\(\) cannot have @CpuBound\(\).*it is static or its name is a symbol/,
    ],
    [
      'on a method with a symbol',
      on(Places.prototype, symbol),
      /^Places\.Symbol\(count\)\(\).*it is static or its name is a symbol/,
    ],
    [
      'on a getter',
      on(Places.prototype, 'getter'),
      /^Places\.getter\(\).*it is not a method; decorate a method/,
    ],
    ['on a property', on(Places.prototype, 'property'), /^Places\.property\(\).*not a method/],
    [
      'as a standard decorator',
      () => standard(() => 1, { kind: 'method', name: 'count' }),
      /"experimentalDecorators": true in tsconfig\.json/,
    ],
    ['twice', on(Cats.prototype, 'count'), /^Cats\.count\(\) has @CpuBound\(\) twice; remove one$/],
    [
      'with wrong options',
      on(Places.prototype, 'method', { timeoutMs: 0, nam: 'x' }),
      /options for @CpuBound\(\) on Places\.method\(\).*timeoutMs: 0 is not allowed.*nam: .*known options: name, timeoutMs, abortOnDisconnect/,
    ],
  ])('%s', (_, declare, words) => {
    expect(declare).toThrow(ClusterConfigurationError);
    expect(declare).toThrow(words);
    expect(definitionsOf(Places.prototype)).toEqual([]);
  });
});
