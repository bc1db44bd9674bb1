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
    isStatic: true,
    injected: false,
    hasModule: false,
    threads: true,
    mainFile: '/app/main.js',
    ...about,
  };
}

/** The class whose method is decorated by a decorator that keeps the descriptor or a copy of it. */
function decorated(type: Subject['type'], method: string, isCopied = false): Subject {
  const { prototype } = type as { prototype: object };
  const descriptor = Object.getOwnPropertyDescriptor(prototype, method)!;
  CpuBound()(prototype, method, isCopied ? { ...descriptor } : descriptor);
  if (!isCopied) Object.defineProperty(prototype, method, descriptor);
  return subject(method, { type }, type as never);
}

class Lists {
  *items(): Generator<number> {}
}
class Copied {
  async count(): Promise<void> {}
}
const PLAIN = subject('plain');
const noFile = { ...PLAIN.definition, site: undefined };

describe('a method that can run in a thread is not refused', () => {
  it.each<[string, Subject]>([
    ['with what a request has', PLAIN],
    ['without arguments', subject('none')],
    ['of an injected class, with a module', subject('plain', { injected: true, hasModule: true })],
    ['with a module that it does not need', subject('plain', { hasModule: true })],
    ['of a class that others extend', subject('weigh', { type: Animals }, Animals as never)],
    ['in no file, without threads', subject('plain', { definition: noFile, threads: false })],
    ['in a main file that starts nothing in a thread', subject('plain', { mainFile: undefined })],
    [
      'in the main file, without threads',
      subject('plain', { mainFile: SITE.file, threads: false }),
    ],
  ])('%s', (_, method) => {
    expect(refusalOf(method)).toBeUndefined();
  });
});

describe('a method that cannot run in a thread is refused', () => {
  const takes = (method: string, decorator: string): [string, Subject, RegExp] => [
    `it takes ${decorator}`,
    subject(method),
    new RegExp(
      `^Cats\\.${method} takes ${decorator.replace(/[()]/g, '\\$&')}, which cannot leave the event loop; take what it needs by @Param\\(\\), .* and leave the response to Nest$`,
    ),
  ];
  it.each<[string, Subject, RegExp]>([
    takes('request', '@Req()'),
    takes('response', '@Res()'),
    takes('passthrough', '@Res()'),
    takes('next', '@Next()'),
    ...['sseBelow', 'sseAbove'].map((method): [string, Subject, RegExp] => [
      `it is a stream of events (${method})`,
      subject(method),
      /is an @Sse\(\) stream, .*compute each event in a @CpuBound\(\) method of a provider/,
    ]),
    [
      'it is a generator',
      decorated(Lists, 'items'),
      /^Lists\.items is a generator, and a thread gives one result; return an array, or compute each item in a @CpuBound\(\) method$/,
    ],
    [
      'it is inherited',
      subject('weigh'),
      /^Cats\.weigh is inherited from Animals, of which a thread would make an instance, not of Cats; override it in Cats with @CpuBound\(\) and call super\.weigh\(\)$/,
    ],
    [
      'its class has more than one instance',
      subject('plain', { isStatic: false }),
      /^Cats\.plain belongs to a class with an instance for each request.*move the method to a provider of default scope/,
    ],
    [
      'it is in no file',
      subject('plain', { definition: noFile }),
      /^Cats\.plain is declared in code that is evaluated and in no file.*set devtool: 'source-map'.*or set CLUSTER_OFFLOAD=inline/,
    ],
    [
      'its file starts the app',
      subject('plain', { mainFile: SITE.file }),
      /^Cats\.plain is declared in \/app\/cats\.js, which starts the app.*in a file of its own, or start the app by ClusterModule\.bootstrap\(\)/,
    ],
    [
      'what the decorator made was thrown away',
      decorated(Copied, 'count', true),
      /^Copied\.count is decorated with @CpuBound\(\), but .*apply it to the descriptor itself, or return what it returns/,
    ],
  ])('%s', (_, method, words) => {
    expect(refusalOf(method)).toMatch(words);
  });
});

it('a class that is injected with something is refused, and the two ways out are code', () => {
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
