import 'reflect-metadata';
import {
  applyDecorators,
  Controller,
  Get,
  HttpCode,
  Param,
  SetMetadata,
  UseGuards,
} from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { ClusterConfigurationError } from '../../../src/contract/errors/index.js';
import { CpuBound } from '../../../src/offload/index.js';
import {
  bindOffloaded,
  definitionsOf,
  offloadedCall,
  ownDefinitions,
} from '../../../src/offload/cpu-bound.metadata.js';

class Guard {
  canActivate = () => true;
}

function refusal(declare: () => unknown): string {
  try {
    declare();
  } catch (error) {
    expect(error).toBeInstanceOf(ClusterConfigurationError);
    return (error as Error).message;
  }
  throw new Error('it was accepted');
}

const methodOf = (type: { prototype: object }, name: string) =>
  (type.prototype as Record<string, object>)[name]!;

/** Applies it to what a class has, as compilers do. */
function apply(target: object, key: string | symbol, decorator = CpuBound()): unknown {
  return decorator(target, key, Object.getOwnPropertyDescriptor(target, key)!);
}

describe('a method with @CpuBound()', () => {
  class Cats {
    readonly name = 'Tom';

    @CpuBound({ timeoutMs: 5 })
    count(first: number, second = 2, ...others: number[]): string {
      return `${this.name} ${first + second + others.length}`;
    }

    @CpuBound()
    async later(value: unknown): Promise<unknown> {
      return value;
    }

    @CpuBound()
    fails(): never {
      throw new RangeError('x');
    }

    plain(): void {}
  }

  it('just runs where nothing offloads it, as in a unit test of its class', async () => {
    const cats = new Cats();
    expect(cats.count(1, 2, 3)).toBe('Tom 4');
    expect(cats.count(1)).toBe('Tom 3');
    const value = { f: () => 1 };
    expect(await cats.later(value)).toBe(value);
    expect(() => cats.fails()).toThrow(RangeError);
    expect(Cats.prototype.count.call({ name: 'Kim' } as unknown as Cats, 1)).toBe('Kim 3');
    expect((Cats.prototype.later as (v: unknown) => unknown).call(undefined, 1)).toBeInstanceOf(
      Promise,
    );
  });

  it('keeps its name, its length, and what it is as a property', () => {
    const plain = Object.getOwnPropertyDescriptor(Cats.prototype, 'plain')!;
    const count = Object.getOwnPropertyDescriptor(Cats.prototype, 'count')!;
    expect(count).toMatchObject({ ...plain, value: count.value as unknown });
    expect([Cats.prototype.count.name, Cats.prototype.count.length]).toEqual(['count', 1]);
    expect(Object.keys(Cats.prototype)).toEqual([]);
  });

  it('is known by its class, with its options and the body as it was written', () => {
    const definitions = ownDefinitions(Cats.prototype);
    expect(definitions.map(({ method }) => method)).toEqual(['count', 'later', 'fails']);
    expect(definitions[0]).toMatchObject({ owner: Cats.prototype, options: { timeoutMs: 5 } });
    expect(definitions[0]!.body.call({ name: 'Kim' }, 1)).toBe('Kim 3');
    expect(definitions[0]!.body === methodOf(Cats, 'count')).toBe(false);
  });

  it('is offloaded on the instance for which that is asked for, and on no other', async () => {
    const [cats, others] = [new Cats(), new Cats()];
    const [count] = ownDefinitions(Cats.prototype);
    const calls: unknown[][] = [];
    bindOffloaded(cats, count!, async (args) => calls.push(args));
    expect(await (cats.count(1, 2) as unknown)).toBe(1);
    expect(calls).toEqual([[1, 2]]);
    expect(others.count(1)).toBe('Tom 3');
    expect(await cats.later(5)).toBe(5);
    expect(Object.keys(cats)).toEqual(['name']);
    expect(JSON.stringify(cats)).toBe('{"name":"Tom"}');
  });
});

describe('metadata of other decorators', () => {
  const GUARDS = '__guards__';
  const HTTP_CODE = '__httpCode__';

  @Controller('cats')
  class Cats {
    @CpuBound()
    @Get('above')
    @HttpCode(202)
    @UseGuards(Guard)
    @SetMetadata('role', 'admin')
    above(@Param('id') id: string): string {
      return id;
    }

    @Get('below')
    @HttpCode(202)
    @UseGuards(Guard)
    @SetMetadata('role', 'admin')
    @CpuBound()
    below(@Param('id') id: string): string {
      return id;
    }

    @Get('between')
    @HttpCode(202)
    @CpuBound()
    @UseGuards(Guard)
    @SetMetadata('role', 'admin')
    between(@Param('id') id: string): string {
      return id;
    }

    @(applyDecorators(
      Get('composed'),
      HttpCode(202),
      CpuBound(),
      UseGuards(Guard),
      SetMetadata('role', 'admin'),
    ) as MethodDecorator)
    composed(@Param('id') id: string): string {
      return id;
    }
  }

  it.each(['above', 'below', 'between', 'composed'] as const)(
    'is there where @CpuBound() stands %s',
    (method) => {
      const handler = Cats.prototype[method];
      const read = (key: string) => Reflect.getMetadata(key, handler) as unknown;
      expect(read('path')).toBe(method);
      expect(read('method')).toBe(0);
      expect(read(HTTP_CODE)).toBe(202);
      expect(read(GUARDS)).toEqual([Guard]);
      expect(read('role')).toBe('admin');
      expect(Reflect.getMetadata('__routeArguments__', Cats, method)).toBeDefined();
      expect(handler.name).toBe(method);
    },
  );

  it('is that of each method alone', () => {
    expect(ownDefinitions(Cats.prototype)).toHaveLength(4);
    const pathOf = (method: string) =>
      Reflect.getMetadata('path', methodOf(Cats, method)) as unknown;
    expect([pathOf('above'), pathOf('below')]).toEqual(['above', 'below']);
  });
});

describe('a decorator above that wraps', () => {
  it('stays in the caller: the body is what stands below', () => {
    const Twice: MethodDecorator = (_target, _key, descriptor) => {
      const inner = descriptor.value as unknown as () => number;
      return { ...descriptor, value: (() => 2 * inner()) as never };
    };
    class Cats {
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
    const [above, below] = ownDefinitions(Cats.prototype);
    expect([above!.body(), below!.body()]).toEqual([1, 2]);
    expect([new Cats().above(), new Cats().below()]).toEqual([2, 2]);
  });
});

describe('a class that extends another', () => {
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
  class Cats extends Animals {
    @CpuBound()
    override count(): string {
      return `cats and ${super.count()}`;
    }
  }
  class Dogs extends Animals {
    override count(): string {
      return 'dogs';
    }
  }

  it('has its own methods of itself, and those that it inherits', () => {
    expect(ownDefinitions(Cats.prototype).map(({ method }) => method)).toEqual(['count']);
    expect(definitionsOf(Cats.prototype).map(({ method, owner }) => [method, owner])).toEqual([
      ['count', Cats.prototype],
      ['weigh', Animals.prototype],
    ]);
    expect(definitionsOf(Animals.prototype)).toHaveLength(2);
  });

  it('has none of a name that it has given to a plain method', () => {
    expect(definitionsOf(Dogs.prototype).map(({ method }) => method)).toEqual(['weigh']);
  });

  it('calls what it overrides where it is', () => {
    expect(new Cats().count()).toBe('cats and animals');
    const cats = new Cats();
    const [own] = definitionsOf(Cats.prototype);
    bindOffloaded(cats, own!, async () => 'offloaded');
    expect(offloadedCall(cats, definitionsOf(Animals.prototype)[0]!)).toBeUndefined();
  });

  it('has none where nobody has', () => {
    expect(definitionsOf(class {}.prototype as object)).toEqual([]);
    expect(ownDefinitions(Dogs.prototype)).toEqual([]);
  });
});

describe('what cannot be', () => {
  it('is a static method', () => {
    class Cats {
      static count(): void {}
    }
    expect(refusal(() => apply(Cats, 'count'))).toMatch(
      /^Cats\.count\(\) cannot have @CpuBound\(\).*neither static nor named by a symbol/,
    );
  });

  it('is a method that is named by a symbol', () => {
    const key = Symbol('count');
    class Cats {
      [key](): void {}
    }
    expect(refusal(() => apply(Cats.prototype, key))).toMatch(
      /^Cats\.Symbol\(count\)\(\).*neither static nor named by a symbol/,
    );
  });

  it.each([
    [
      'a getter',
      class Cats {
        get count(): number {
          return 1;
        }
      },
    ],
    ['a property', class Cats {}],
  ])('is %s', (_, type) => {
    const { prototype } = type as { prototype: object };
    expect(refusal(() => apply(prototype, 'count'))).toMatch(
      /^Cats\.count\(\).*it is not a method; decorate a method/,
    );
    expect(ownDefinitions(prototype)).toEqual([]);
  });

  it('is a standard decorator', () => {
    const decorate = CpuBound() as unknown as (value: unknown, context: object) => unknown;
    expect(refusal(() => decorate(() => 1, { kind: 'method', name: 'count' }))).toContain(
      '"experimentalDecorators": true in tsconfig.json',
    );
  });

  it('is twice on one method', () => {
    class Cats {
      @CpuBound()
      count(): void {}
    }
    expect(refusal(() => apply(Cats.prototype, 'count'))).toBe(
      'Cats.count() has @CpuBound() twice; leave one',
    );
  });

  it('is an option that is wrong, told with the method', () => {
    class Cats {
      count(): void {}
    }
    const wrong = CpuBound({ timeoutMs: 0, nam: 'x' } as never);
    const message = refusal(() => apply(Cats.prototype, 'count', wrong));
    expect(message).toContain('options of @CpuBound() on Cats.count()');
    expect(message).toContain('timeoutMs: 0 is not allowed');
    expect(message).toMatch(/nam: .*known are name, timeoutMs, abortOnDisconnect/);
  });
});
