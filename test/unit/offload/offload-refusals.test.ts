import 'reflect-metadata';
import { Body, Controller, createParamDecorator, Next, Param, Req, Res, Sse } from '@nestjs/common';
import { EMPTY, type Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { definitionsOf } from '../../../src/offload/cpu-bound.decorator.js';
import { CpuBound } from '../../../src/offload/index.js';
import { refusalOf, refusalOfModule, type Subject } from '../../../src/offload/refusals.js';

const User = createParamDecorator(() => 'somebody');

class Animals {
  @CpuBound() weigh(): void {}
}

@Controller()
class Cats extends Animals {
  @CpuBound() none(): void {}
  @CpuBound() plain(@Param('id') _id: string, @Body() _body: object, @User() _user: string): void {}
  @CpuBound() request(@Param('id') _id: string, @Req() _request: object): void {}
  @CpuBound() response(@Res({ passthrough: true }) _response: object): void {}
  @CpuBound() next(@Next() _next: object): void {}

  @CpuBound()
  @Sse('below')
  below(): Observable<never> {
    return EMPTY;
  }

  @Sse('above')
  @CpuBound()
  above(): Observable<never> {
    return EMPTY;
  }
}

const FILE = '/app/cats.js';

/** A method of `Cats` that can run in a thread, or `about` it. */
function subject(
  method: string,
  about: Partial<Subject> & { readonly file?: string | undefined } = {},
): Subject {
  const { file, type, ...others } = { file: FILE, type: Cats, ...about };
  const found = definitionsOf(type.prototype as object).find((each) => each.method === method)!;
  return {
    name: `${type.name}.${method}`,
    definition: { ...found, file },
    type,
    isStatic: true,
    injected: false,
    hasModule: false,
    threads: true,
    mainFile: '/app/main.js',
    ...others,
  };
}

it.each<[string, Subject]>([
  ['with parts of the request', subject('plain')],
  ['without arguments', subject('none')],
  ['of an injected class, with a module', subject('plain', { injected: true, hasModule: true })],
  ['of a class that others extend', subject('weigh', { type: Animals })],
  ['in no file, without threads', subject('plain', { file: undefined, threads: false })],
  ['in a main file that starts nothing in a thread', subject('plain', { mainFile: undefined })],
  ['in the main file, without threads', subject('plain', { mainFile: FILE, threads: false })],
])('a method can run in a thread %s', (_, method) => {
  expect(refusalOf(method)).toBeUndefined();
});

const connection = (method: string, decorator: string): [string, Subject, string] => [
  `it takes ${decorator}`,
  subject(method),
  `Cats.${method} takes ${decorator}, which cannot leave the event loop; take what it needs by @Param(), @Query(), @Body() or @Headers(), and leave the response to Nest`,
];
const sse = (method: string): [string, Subject, string] => [
  `@Sse() is ${method} @CpuBound()`,
  subject(method),
  `Cats.${method} is an @Sse() stream, which cannot come from a thread; compute each event in a @CpuBound() method of a provider`,
];

it.each<[string, Subject, string]>([
  connection('request', '@Req()'),
  connection('response', '@Res()'),
  connection('next', '@Next()'),
  sse('below'),
  sse('above'),
  [
    'it is inherited',
    subject('weigh'),
    'Cats.weigh is inherited from Animals, of which a thread would make an instance, not of Cats; override it in Cats with @CpuBound() and call super.weigh()',
  ],
  [
    'its class has more than one instance',
    subject('plain', { isStatic: false }),
    'Cats.plain belongs to a class with an instance for each request or each consumer (scope REQUEST or TRANSIENT, its own or that of something injected); move the method to a provider of default scope, and pass what it needs of the request as arguments',
  ],
  [
    'it is in no file',
    subject('plain', { file: undefined }),
    `Cats.plain is declared in code that is evaluated and in no file, so that no thread can import it; with webpack or rspack set devtool: 'source-map' in the place of an "eval" one, or set CLUSTER_OFFLOAD=inline`,
  ],
  [
    'its file starts the app',
    subject('plain', { mainFile: FILE }),
    'Cats.plain is declared in /app/cats.js, which starts the app: a thread that imports it would start another; declare the class in a file of its own, or start the app by ClusterModule.bootstrap()',
  ],
])('a method is refused if %s', (_, method, words) => {
  expect(refusalOf(method)).toBe(words);
});

it('a class that Nest injects something into is refused with two ways out, as code', () => {
  class Prices {
    constructor(
      readonly cats: Cats,
      readonly dogs: Animals,
    ) {}
    @CpuBound() total(): void {}
  }
  // TypeScript emits `Object` for an interface. esbuild emits nothing.
  const refused = (types?: unknown[]) => {
    Reflect.defineMetadata('design:paramtypes', types, Prices);
    return refusalOf(subject('total', { type: Prices as never, injected: true }));
  };
  const refusal = (providers: string) =>
    'the constructor of Prices takes arguments, or Nest injects its properties, and a thread does not know with what, for Prices.total; ' +
    'move the method to a provider of its own, without a constructor: @Injectable() export class PricesWork { @CpuBound() total(…) { … } }; ' +
    `or give the threads a module with the dependencies: @Module({ providers: [${providers}] }) export class ThreadModule {}, and ClusterModule.forRoot({ offload: { module: ThreadModule } }), with forRootAsync() beside useFactory`;
  expect(refused([Cats, Animals])).toBe(refusal('Cats, Animals'));
  expect(refused([Cats, Object])).toBe(refusal('Cats, …'));
  expect(refused()).toBe(refusal('…'));
});

describe('offload.module', () => {
  const situation = { hasModule: true, threads: true, mainFile: '/app/main.js' };

  it('is refused in the file that starts the app', () => {
    expect(refusalOfModule('Tools', '/app/main.js', situation)).toBe(
      'offload.module (Tools) is given to forRoot() in /app/main.js, which starts the app: a thread that imports it would start another; ' +
        'move the module that imports ClusterModule to a file of its own, or start the app by ClusterModule.bootstrap()',
    );
  });

  it.each([
    ['in another file', '/app/app.module.js', situation],
    ['in no file', undefined, { ...situation, mainFile: undefined }],
    ['in that file, without threads', '/app/main.js', { ...situation, threads: false }],
  ])('is accepted %s', (_, file, where) => {
    expect(refusalOfModule('Tools', file, where)).toBeUndefined();
  });
});
