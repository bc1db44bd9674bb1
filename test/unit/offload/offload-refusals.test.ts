import 'reflect-metadata';
import {
  Body,
  Controller,
  createParamDecorator,
  Get,
  Headers,
  Injectable,
  Ip,
  Next,
  Param,
  Query,
  Req,
  Res,
  Sse,
} from '@nestjs/common';
import { runInThisContext } from 'node:vm';
import { EMPTY, type Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { CpuBound } from '../../../src/offload/index.js';
import { type CpuBoundDefinition, definitionsOf } from '../../../src/offload/cpu-bound.metadata.js';
import { refusalOf, refusalOfModule, type Subject } from '../../../src/offload/task/refusals.js';

const User = createParamDecorator(() => 'somebody');

@Injectable()
class Animals {
  @CpuBound()
  async weigh(): Promise<number> {
    return 1;
  }
}

@Controller()
class Cats extends Animals {
  @Get()
  @CpuBound()
  async plain(
    @Param('id') id: string,
    @Query() query: object,
    @Body() body: object,
    @Headers() headers: object,
    @Ip() ip: string,
    @User() user: string,
  ): Promise<unknown> {
    return [id, query, body, headers, ip, user];
  }

  @Get()
  @CpuBound()
  async none(): Promise<void> {}

  @Get()
  @CpuBound()
  async request(@Param('id') id: string, @Req() request: object): Promise<unknown> {
    return [id, request];
  }

  @Get()
  @CpuBound()
  async response(@Res() response: object): Promise<unknown> {
    return response;
  }

  @Get()
  @CpuBound()
  async passthrough(@Res({ passthrough: true }) response: object): Promise<unknown> {
    return response;
  }

  @Get()
  @CpuBound()
  async next(@Next() next: object): Promise<unknown> {
    return next;
  }

  @CpuBound()
  @Sse('below')
  sseBelow(): Observable<never> {
    return EMPTY;
  }

  @Sse('above')
  @CpuBound()
  sseAbove(): Observable<never> {
    return EMPTY;
  }
}

const SITE = { file: '/app/cats.js', place: '/app/cats.js:1:1' };

function subject(method: string, about: Partial<Subject> = {}, type = Cats): Subject {
  const definition = definitionsOf(type.prototype).find((each) => each.method === method)!;
  return {
    name: `${type.name}.${method}`,
    definition: { ...definition, site: SITE } satisfies CpuBoundDefinition,
    type,
    isController: true,
    isStatic: true,
    injected: false,
    hasModule: false,
    threads: true,
    mainFile: '/app/main.js',
    ...about,
  };
}

describe('a method that can run in a thread', () => {
  it.each(['plain', 'none'])('is not refused: %s', (method) => {
    expect(refusalOf(subject(method))).toBeUndefined();
  });

  it('is not refused where its class is injected with something, and a thread has it too', () => {
    expect(refusalOf(subject('plain', { injected: true, hasModule: true }))).toBeUndefined();
    expect(refusalOf(subject('plain', { injected: false, hasModule: true }))).toBeUndefined();
  });

  it('is not refused where it is the own one of a class that others extend', () => {
    expect(
      refusalOf(
        subject('weigh', { isController: false, type: Animals as never }, Animals as never),
      ),
    ).toBeUndefined();
  });
});

describe('a method that takes what belongs to the connection', () => {
  it.each([
    ['request', '@Req()'],
    ['response', '@Res()'],
    ['passthrough', '@Res()'],
    ['next', '@Next()'],
  ])('is refused: %s', (method, decorator) => {
    expect(refusalOf(subject(method))).toBe(
      `Cats.${method} takes ${decorator}, which cannot leave the event loop; ` +
        'take what it needs by @Param(), @Query(), @Body() or @Headers(), and leave the response to Nest',
    );
  });
});

describe('a stream of events', () => {
  it.each(['sseBelow', 'sseAbove'])(
    'is refused in whatever order the decorators are: %s',
    (method) => {
      expect(refusalOf(subject(method))).toMatch(
        new RegExp(
          `^Cats\\.${method} is an @Sse\\(\\) stream, .*compute each event in a @CpuBound\\(\\) method of a provider`,
        ),
      );
    },
  );
});

describe('a generator', () => {
  it('is refused: a thread gives one result', () => {
    class Lists {
      *items(): Generator<number> {}
    }
    const { prototype } = Lists;
    const descriptor = Object.getOwnPropertyDescriptor(prototype, 'items')!;
    CpuBound()(prototype, 'items', descriptor);
    Object.defineProperty(prototype, 'items', descriptor);
    expect(refusalOf(subject('items', { type: Lists }, Lists as never))).toBe(
      'Lists.items is a generator, and a thread gives one result; return an array, or compute each item in a @CpuBound() method',
    );
  });
});

describe('a method that is inherited', () => {
  it('is refused: a thread would have an instance of the class that declares it', () => {
    expect(refusalOf(subject('weigh'))).toBe(
      'Cats.weigh is inherited from Animals, of which a thread would make an instance, not of Cats; ' +
        'override it in Cats with @CpuBound() and call super.weigh()',
    );
  });
});

describe('a class with more than one instance', () => {
  it('is refused', () => {
    expect(refusalOf(subject('plain', { isStatic: false }))).toMatch(
      /^Cats\.plain belongs to a class with an instance for each request.*move the method to a provider of default scope/,
    );
  });
});

describe('a class that is injected with something', () => {
  it('is refused where a thread has nothing to inject, and the two ways out are code', () => {
    @Injectable()
    class Prices {
      constructor(
        readonly cats: Cats,
        readonly dogs: Animals,
      ) {}
      @CpuBound()
      total(): void {}
    }
    // TypeScript emits `Object` for an interface. esbuild emits nothing.
    const refused = (types?: unknown[]) => {
      Reflect.defineMetadata('design:paramtypes', types, Prices);
      return refusalOf(subject('total', { type: Prices, injected: true }, Prices as never));
    };
    const refusal = (providers: string) =>
      'the constructor of Prices takes arguments, or Nest injects its properties, and a thread does not know with what, for Prices.total; ' +
      'move the method to a provider of its own, without a constructor: @Injectable() export class PricesWork { @CpuBound() total(…) { … } }; ' +
      `or give the threads a module with the dependencies: @Module({ providers: [${providers}] }) export class ThreadModule {}, and ClusterModule.forRoot({ offload: { module: ThreadModule } }), with forRootAsync() beside useFactory`;
    expect(refused([Cats, Animals])).toBe(refusal('Cats, Animals'));
    expect(refused([Cats, Object])).toBe(refusal('Cats, …'));
    expect(refused()).toBe(refusal('…'));
  });
});

describe('a class that is in no file', () => {
  it('is refused', () => {
    const { definition, ...rest } = subject('plain');
    expect(refusalOf({ ...rest, definition: { ...definition, site: undefined } })).toMatch(
      /^Cats\.plain is declared in code that is evaluated and in no file.*set devtool: 'source-map'.*or set CLUSTER_OFFLOAD=inline/,
    );
  });

  it('is not refused where there are no threads', () => {
    const { definition, ...rest } = subject('plain', { threads: false });
    expect(refusalOf({ ...rest, definition: { ...definition, site: undefined } })).toBeUndefined();
  });
});

describe('a class whose name a minifier has replaced', () => {
  const minified = (source: string) => runInThisContext(`(${source})`) as Subject['type'];

  it.each([['class e{run(){}}'], ['class Ab extends Array{}'], ['class{}']])(
    'is refused with the options to set: %s',
    (source) => {
      expect(refusalOf(subject('plain', { name: 'e.run', ...classOf(minified(source)) }))).toMatch(
        /^e\.run has no name that metrics could show.*\(\/app\/cats\.js:1:1\); keep the names of classes \(keepNames: true for esbuild, .*@CpuBound\(\{ name: '…' \}\)$/,
      );
    },
  );

  it.each([['class Io { run() {} }'], ['class Report{run(){}}'], ['class Db extends Array {}']])(
    'is another one than this: %s',
    (source) => {
      expect(refusalOf(subject('plain', classOf(minified(source))))).toBeUndefined();
    },
  );

  it('is not refused where the method has a name of its own', () => {
    const { definition, ...about } = classOf(minified('class e{run(){}}'));
    const named = { ...definition, options: { name: 'report' } };
    expect(refusalOf(subject('plain', { ...about, definition: named }))).toBeUndefined();
  });

  /** The class with a decorated `run()`. */
  function classOf(type: Subject['type']): Pick<Subject, 'type' | 'definition'> {
    const { definition } = subject('plain');
    (type.prototype as Record<string, unknown>)['run'] = () => {};
    return { type, definition: { ...definition, owner: type.prototype as object, method: 'run' } };
  }
});

describe('a class in the file that starts the app', () => {
  it('is refused: a thread that imports it would start another', () => {
    expect(refusalOf(subject('plain', { mainFile: '/app/cats.js' }))).toMatch(
      /^Cats\.plain is declared in \/app\/cats\.js, which starts the app.*in a file of its own, or start the app by ClusterModule\.bootstrap\(\)/,
    );
  });

  it('is not refused where that is known to start nothing in a thread, or there are none', () => {
    expect(refusalOf(subject('plain', { mainFile: undefined }))).toBeUndefined();
    expect(
      refusalOf(subject('plain', { mainFile: '/app/cats.js', threads: false })),
    ).toBeUndefined();
  });
});

describe('a decorator that was given a copy of the descriptor', () => {
  it('is refused: what it made of that was thrown away', () => {
    class Copied {
      async count(): Promise<void> {}
    }
    const { prototype } = Copied;
    CpuBound()(prototype, 'count', { ...Object.getOwnPropertyDescriptor(prototype, 'count')! });
    expect(refusalOf(subject('count', { type: Copied }, Copied as never))).toMatch(
      /^Copied\.count is decorated with @CpuBound\(\), but .*apply it to the descriptor itself, or return what it returns/,
    );
  });
});

describe('offload.module', () => {
  const situation = { hasModule: true, threads: true, mainFile: '/app/main.js' };

  it('is refused where it is given in the file that starts the app', () => {
    expect(refusalOfModule('Tools', '/app/main.js', situation)).toMatch(
      /^offload\.module \(Tools\) is given to forRoot\(\) in \/app\/main\.js, which starts the app.*move the module that imports ClusterModule to a file of its own/,
    );
  });

  it.each([
    ['another file', '/app/app.module.js', situation],
    ['no file', undefined, situation],
    [
      'no file, and none is known to start the app',
      undefined,
      { ...situation, mainFile: undefined },
    ],
    ['that file, without threads', '/app/main.js', { ...situation, threads: false }],
  ])('is not refused where it is given in %s', (_, file, where) => {
    expect(refusalOfModule('Tools', file, where)).toBeUndefined();
  });
});
