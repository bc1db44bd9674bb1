import {
  Body,
  Controller,
  createParamDecorator,
  Inject,
  Injectable,
  Module,
  type ModuleMetadata,
  Next,
  Optional,
  Param,
  Req,
  Res,
  Scope,
  Sse,
  type Type,
} from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { EMPTY, type Observable } from 'rxjs';
import { expect, it } from 'vitest';
import { CpuBound, definitionsOf } from '../../../src/offload/cpu-bound.decorator.js';
import {
  OffloadExplorer,
  refusalOf,
  refusalOfModule,
  type Subject,
} from '../../../src/offload/offload.explorer.js';
import { contextOf } from '../support/nest-app.js';

/** Explores an app. */
async function explore(metadata: ModuleMetadata, hasModule = false) {
  const context = await contextOf({
    ...metadata,
    imports: [DiscoveryModule, ...(metadata.imports ?? [])],
    providers: [OffloadExplorer, ...(metadata.providers ?? [])],
  });
  const { found, refusals } = context
    .get(OffloadExplorer)
    .explore({ hasModule, threads: true, mainFile: undefined });
  return { context, found, refusals, names: found.map(({ name }) => name).sort() };
}

@Injectable()
class Plain {
  @CpuBound()
  async count(): Promise<void> {}

  @CpuBound({ name: 'weighing' })
  async weigh(): Promise<void> {}

  async other(): Promise<void> {}
}

@Controller()
class Handlers {
  @CpuBound()
  count(): void {}
}

it('finds the methods of all instances, beside values of any kind', async () => {
  @Module({ providers: [Plain] })
  class Feature {}
  const values = [null, undefined, 0, 'x', Symbol('x'), () => 1, [], Object.create(null), class {}];
  const { names, found, context, refusals } = await explore({
    imports: [Feature],
    controllers: [Handlers],
    providers: [
      Plain,
      { provide: 'alias', useExisting: Plain },
      ...values.map((value, i) => ({ provide: `value${i}`, useFactory: () => value as unknown })),
    ],
  });
  expect(names).toEqual(['Handlers.count', 'Plain.count', 'Plain.count', 'weighing', 'weighing']);
  expect(refusals).toEqual([]);
  const counts = found.filter(({ name }) => name === 'Plain.count');
  expect(counts[0]).toMatchObject({ injected: false, definition: { file: import.meta.filename } });
  const instances = new Set(counts.map(({ instance }) => instance));
  expect([instances.size, instances.has(context.get(Plain))]).toEqual([2, true]);
});

it('finds instances that the app has created itself', async () => {
  const made = new Plain();
  const { found } = await explore({ providers: [{ provide: 'cats', useFactory: () => made }] });
  expect(found.map(({ instance }) => instance)).toEqual([made, made]);
});

it('refuses a class that Nest injects something into, unless there is an offload.module', async () => {
  @Injectable()
  class WithDependency {
    constructor(@Inject(Plain) readonly plain: Plain) {}
    @CpuBound() async count(): Promise<void> {}
  }
  @Injectable()
  class ByProperty {
    @Inject(Plain) readonly plain!: Plain;
    @CpuBound() async count(): Promise<void> {}
  }
  @Injectable()
  class Optionally {
    constructor(@Optional() @Inject('nothing') readonly nothing?: unknown) {}
    @CpuBound() async count(): Promise<void> {}
  }
  @Injectable()
  class Inherits extends WithDependency {
    @CpuBound() override async count(): Promise<void> {}
  }
  const injected = [WithDependency, ByProperty, Optionally, Inherits];
  const providers = [Plain, ...injected];
  @Module({ providers })
  class Feature {}
  const { names, refusals } = await explore({ imports: [Feature], providers });
  expect(new Set(names)).toEqual(new Set(['Plain.count', 'weighing']));
  expect(refusals).toEqual(
    injected.map(({ name }) =>
      expect.stringMatching(`^${name}.count needs an instance of ${name}, which has constructor `),
    ),
  );

  const { found } = await explore({ providers }, true);
  expect(found.filter((each) => each.injected).map(({ name }) => name)).toEqual(
    injected.map(({ name }) => `${name}.count`),
  );
});

it('refuses a class with more than one instance, also by what is injected into it', async () => {
  @Injectable({ scope: Scope.REQUEST })
  class PerRequest {
    @CpuBound() async count(): Promise<void> {}
  }
  @Injectable({ scope: Scope.TRANSIENT })
  class PerConsumer {
    @CpuBound() async count(): Promise<void> {}
  }
  @Injectable()
  class AboveRequest {
    constructor(@Inject(PerRequest) readonly below: PerRequest) {}
    @CpuBound() async count(): Promise<void> {}
  }
  const providers: Type[] = [PerRequest, PerConsumer, AboveRequest];
  const { found, refusals } = await explore({ providers }, true);
  expect(found).toEqual([]);
  expect(refusals).toEqual(
    providers.map(
      ({ name }) =>
        `${name}.count belongs to a request-scoped or transient provider (through its own scope or a dependency's); move the method to a provider in the default scope, and pass request data as arguments`,
    ),
  );
});

it('refuses two methods with the same name, also those of classes with the same name', async () => {
  const classWith = (name: string) => {
    @Injectable()
    class Cats {
      @CpuBound({ name }) async named(): Promise<void> {}
      @CpuBound() async count(): Promise<void> {}
    }
    return Cats;
  };
  const { refusals } = await explore({ providers: [classWith('counting'), classWith('counting')] });
  const files = `${import.meta.filename} and ${import.meta.filename}`;
  expect(refusals).toEqual(
    ['counting', 'Cats.count'].map(
      (name) =>
        `two @CpuBound() methods have the name "${name}" (${files}); rename one with @CpuBound({ name: '…' })`,
    ),
  );
});

const User = createParamDecorator(() => 'somebody');

class Animals {
  @CpuBound() weigh(): void {}
}

@Controller()
class Cats extends Animals {
  @CpuBound() plain(@Param('id') _id: string, @Body() _body: object, @User() _user: string): void {}
  @CpuBound() request(@Param('id') _id: string, @Req() _request: object): void {}
  @CpuBound() response(@Res({ passthrough: true }) _response: object): void {}
  @CpuBound() next(@Next() _next: object): void {}
  @CpuBound() @Sse('below') below(): Observable<never> {
    return EMPTY;
  }
  @Sse('above') @CpuBound() above(): Observable<never> {
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
  ['in no file, without threads', subject('plain', { file: undefined, threads: false })],
  ['in the main file, without threads', subject('plain', { mainFile: FILE, threads: false })],
])('accepts a method %s', (_, method) => {
  expect(refusalOf(method)).toBeUndefined();
});

const connection = (method: string, decorator: string): [Subject, string] => [
  subject(method),
  `Cats.${method} takes ${decorator}, which cannot be sent to a thread; use @Param(), @Query(), @Body() or @Headers(), and let Nest send the response`,
];
const sse = (method: string): [Subject, string] => [
  subject(method),
  `Cats.${method} is an @Sse() stream, which cannot run in a thread; compute each event in a @CpuBound() method of a provider`,
];

it.each<[Subject, string]>([
  connection('request', '@Req()'),
  connection('response', '@Res()'),
  connection('next', '@Next()'),
  sse('below'),
  sse('above'),
  [
    subject('weigh'),
    'Cats.weigh is inherited from Animals, so a thread would instantiate Animals instead of Cats; override it in Cats with @CpuBound() and call super.weigh()',
  ],
  [
    subject('plain', { file: undefined }),
    `Cats.plain is declared in evaluated code without a file, so a thread cannot import it; with webpack or rspack, set devtool: 'source-map' instead of an "eval" devtool, or set CLUSTER_OFFLOAD=inline`,
  ],
  [
    subject('plain', { mainFile: FILE }),
    'Cats.plain is declared in /app/cats.js, which starts the app: a thread importing it would start the app again; move the class to its own file, or start the app with ClusterModule.bootstrap()',
  ],
])('refuses a method with a remedy: $name', (method, words) => {
  expect(refusalOf(method)).toBe(words);
});

it('refuses a class that Nest injects something into with two ways out, as code', () => {
  class Prices {
    @CpuBound() total(): void {}
  }
  // TypeScript emits `Object` for an interface. esbuild emits nothing.
  const refused = (types?: unknown[]) => {
    Reflect.defineMetadata('design:paramtypes', types, Prices);
    return refusalOf(subject('total', { type: Prices as never, injected: true }));
  };
  const refusal = (providers: string) =>
    'Prices.total needs an instance of Prices, which has constructor arguments or injected properties, so a thread cannot create it; ' +
    'move the method to its own provider without a constructor: @Injectable() export class PricesWork { @CpuBound() total(…) { … } }; ' +
    `or provide the dependencies in a module for the threads: @Module({ providers: [${providers}] }) export class ThreadModule {}, and ClusterModule.forRoot({ offload: { module: ThreadModule } }); with forRootAsync(), set offload beside useFactory`;
  expect(refused([Cats, Object])).toBe(refusal('Cats, …'));
  expect(refused()).toBe(refusal('…'));
});

it('refuses an offload.module in the file that starts the app, if there are threads', () => {
  const situation = { hasModule: true, threads: true, mainFile: '/app/main.js' };
  expect(refusalOfModule('Tools', '/app/main.js', situation)).toBe(
    'offload.module (Tools) is passed to forRoot() in /app/main.js, which starts the app: a thread importing it would start the app again; ' +
      'move the module that imports ClusterModule to its own file, or start the app with ClusterModule.bootstrap()',
  );
  expect(refusalOfModule('Tools', '/app/app.module.js', situation)).toBeUndefined();
  expect(
    refusalOfModule('Tools', '/app/main.js', { ...situation, threads: false }),
  ).toBeUndefined();
});
