import 'reflect-metadata';
import {
  Controller,
  type INestApplicationContext,
  Inject,
  Injectable,
  Module,
  type ModuleMetadata,
  Optional,
  Scope,
  type Type,
} from '@nestjs/common';
import { DiscoveryModule, NestFactory } from '@nestjs/core';
import { afterEach, expect, it } from 'vitest';
import { CpuBound, OffloadExplorer } from '../../../src/offload/index.js';

const contexts: INestApplicationContext[] = [];
afterEach(async () => {
  for (const context of contexts.splice(0)) await context.close();
});

/** Explores an app. */
async function explore(metadata: ModuleMetadata, hasModule = false) {
  @Module({
    ...metadata,
    imports: [DiscoveryModule, ...(metadata.imports ?? [])],
    providers: [OffloadExplorer, ...(metadata.providers ?? [])],
  })
  class App {}
  const options = { logger: false, abortOnError: false } as const;
  const context = await NestFactory.createApplicationContext(App, options);
  contexts.push(context);
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

@Injectable()
class WithDependency {
  constructor(@Inject(Plain) readonly plain: Plain) {}

  @CpuBound()
  async count(): Promise<void> {}
}

it('the methods of all instances are found, beside values of any kind', async () => {
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

it('instances that the app has created itself are found', async () => {
  const made = new Plain();
  for (const how of [
    { useValue: made },
    { useFactory: () => made },
    { useFactory: async () => made },
  ]) {
    const { found, refusals } = await explore({ providers: [{ provide: 'cats', ...how }] });
    expect(refusals).toEqual([]);
    expect(found.map(({ instance }) => instance)).toEqual([made, made]);
  }
});

it('a class that Nest injects something into needs offload.module: one refusal a method', async () => {
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
  @Injectable()
  class NoArguments {
    readonly limit: number;
    constructor() {
      this.limit = 5;
    }
    @CpuBound() async count(): Promise<void> {}
  }
  const injected = [WithDependency, ByProperty, Optionally, Inherits];
  const providers = [Plain, NoArguments, ...injected];
  @Module({ providers })
  class Feature {}
  const { names, refusals } = await explore({ imports: [Feature], providers });
  expect(new Set(names)).toEqual(new Set(['NoArguments.count', 'Plain.count', 'weighing']));
  expect(refusals).toEqual(
    injected.map(({ name }) =>
      expect.stringMatching(`^the constructor of ${name} takes arguments.* for ${name}.count;`),
    ),
  );

  const { found } = await explore({ providers }, true);
  expect(found.filter((each) => each.injected).map(({ name }) => name)).toEqual(
    injected.map(({ name }) => `${name}.count`),
  );
});

it('a class with more than one instance is refused, also by what is injected into it', async () => {
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
  @Controller({ scope: Scope.REQUEST })
  class Scoped {
    @CpuBound() count(): void {}
  }
  const types: Type[] = [Scoped, PerRequest, PerConsumer, AboveRequest];
  const [controller, ...providers] = types;
  const { found, refusals } = await explore({ controllers: [controller!], providers }, true);
  expect(found).toEqual([]);
  expect(refusals).toEqual(
    types.map(({ name }) => expect.stringContaining(`${name}.count belongs to a class with`)),
  );
});

it('two methods with the same name are refused, also those of classes with the same name', async () => {
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
        `two @CpuBound() methods are called "${name}" (${files}); give one a name of its own: @CpuBound({ name: '…' })`,
    ),
  );
});
