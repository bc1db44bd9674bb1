import 'reflect-metadata';
import {
  Controller,
  Get,
  type INestApplicationContext,
  Inject,
  Injectable,
  Module,
  type ModuleMetadata,
  Optional,
  Req,
  Scope,
  type Type,
} from '@nestjs/common';
import { DiscoveryModule, NestFactory } from '@nestjs/core';
import { afterEach, describe, expect, it } from 'vitest';
import { CpuBound, OffloadExplorer } from '../../../src/offload/index.js';
import type { CpuBoundOptions } from '../../../src/contract/options/cpu-bound.js';

const contexts: INestApplicationContext[] = [];
afterEach(async () => {
  for (const context of contexts.splice(0)) await context.close();
});

/** What is found in an app that has this. */
async function explore(metadata: ModuleMetadata, hasModule = false) {
  @Module({
    ...metadata,
    imports: [DiscoveryModule, ...(metadata.imports ?? [])],
    providers: [OffloadExplorer, ...(metadata.providers ?? [])],
  })
  class App {}
  const context = await NestFactory.createApplicationContext(App, {
    logger: false,
    abortOnError: false,
  });
  contexts.push(context);
  const { found, refusals } = context
    .get(OffloadExplorer)
    .explore({ hasModule, threads: true, mainFile: undefined });
  return { context, found, refusals, names: found.map(({ name }) => name).sort() };
}

/** `@CpuBound()` on each of these methods, as a compiler applies it that knows the file. */
function cpuBound<T>(type: Type<T>, methods: Record<string, CpuBoundOptions>): Type<T> {
  const prototype = type.prototype as object;
  for (const [method, options] of Object.entries(methods)) {
    const descriptor = Object.getOwnPropertyDescriptor(prototype, method)!;
    const decorated = CpuBound(options)(prototype, method, descriptor) as PropertyDescriptor;
    Object.defineProperty(prototype, method, decorated);
  }
  return type;
}

@Injectable()
class Plain {
  async count(): Promise<void> {}
  async weigh(): Promise<void> {}
  async other(): Promise<void> {}
}
cpuBound(Plain, { count: {}, weigh: { name: 'weighing' } });

@Controller()
class Handlers {
  @Get()
  count(): number {
    return 1;
  }
}
cpuBound(Handlers, { count: {} });

@Injectable()
class WithDependency {
  constructor(@Inject(Plain) readonly plain: Plain) {}

  async count(): Promise<void> {}
}
cpuBound(WithDependency, { count: {} });

describe('what is found in an app', () => {
  it('are the methods of controllers and providers, and no others', async () => {
    const { names, found, context, refusals } = await explore({
      controllers: [Handlers],
      providers: [Plain],
    });
    expect(names).toEqual(['Handlers.count', 'Plain.count', 'weighing']);
    expect(refusals).toEqual([]);
    const count = found.find(({ name }) => name === 'Plain.count')!;
    expect(count).toMatchObject({ className: 'Plain', injected: false });
    expect(count.instance).toBe(context.get(Plain));
    expect(count.definition.site?.file).toBe(import.meta.filename);
  });

  it('is nothing where there is nothing', async () => {
    @Injectable()
    class Nothing {}
    expect(
      await explore({ providers: [Nothing, { provide: 'text', useValue: 'x' }] }),
    ).toMatchObject({ found: [], refusals: [] });
  });

  it('are also instances that the app has made itself', async () => {
    const made = new Plain();
    for (const provider of [
      { provide: 'cats', useValue: made },
      { provide: 'cats', useFactory: () => made },
      { provide: 'cats', useFactory: async () => made },
    ]) {
      const { found, refusals } = await explore({ providers: [provider] });
      expect(refusals).toEqual([]);
      expect(found.map(({ instance }) => instance)).toEqual([made, made]);
    }
  });

  it('is each once, under however many names it is provided', async () => {
    const { names } = await explore({
      providers: [Plain, { provide: 'alias', useExisting: Plain }],
    });
    expect(names).toEqual(['Plain.count', 'weighing']);
  });

  it('is each instance of one class, under one name', async () => {
    @Module({ providers: [Plain] })
    class Feature {}
    const { found, refusals } = await explore({ imports: [Feature], providers: [Plain] });
    expect(refusals).toEqual([]);
    expect(found.filter(({ name }) => name === 'Plain.count')).toHaveLength(2);
    expect(new Set(found.map(({ instance }) => instance)).size).toBe(2);
  });

  it('may stand beside values of any kind', async () => {
    const values = [
      null,
      undefined,
      0,
      '',
      'x',
      Symbol('x'),
      () => 1,
      [],
      Object.create(null),
      class {},
    ];
    const { names, refusals } = await explore({
      providers: [
        Plain,
        ...values.map((value, i) => ({ provide: `value${i}`, useFactory: () => value as unknown })),
      ],
    });
    expect(names).toEqual(['Plain.count', 'weighing']);
    expect(refusals).toEqual([]);
  });
});

describe('a class that is injected with something', () => {
  it('is refused without a module for threads', async () => {
    const { found, refusals } = await explore({ providers: [Plain, WithDependency] });
    expect(refusals).toEqual([
      expect.stringMatching(/^the constructor of WithDependency takes arguments/),
    ]);
    expect(found.map(({ className }) => className)).toEqual(['Plain', 'Plain']);
  });

  it('is found with one, and known to be that', async () => {
    const { found, refusals } = await explore({ providers: [Plain, WithDependency] }, true);
    expect(refusals).toEqual([]);
    expect(found.map(({ name, injected }) => [name, injected])).toContainEqual([
      'WithDependency.count',
      true,
    ]);
  });

  it('is one also where it is a property, or optional, or inherited', async () => {
    @Injectable()
    class ByProperty {
      @Inject(Plain) readonly plain!: Plain;
      async count(): Promise<void> {}
    }
    @Injectable()
    class IfThereIs {
      constructor(@Optional() @Inject('nothing') readonly nothing?: unknown) {}
      async count(): Promise<void> {}
    }
    @Injectable()
    class Inherits extends WithDependency {
      async weigh(): Promise<void> {}
    }
    cpuBound(ByProperty, { count: {} });
    cpuBound(IfThereIs, { count: {} });
    cpuBound(Inherits, { weigh: {} });
    const { refusals } = await explore({ providers: [Plain, ByProperty, IfThereIs, Inherits] });
    for (const name of ['ByProperty.count', 'IfThereIs.count', 'Inherits.weigh']) {
      const [type] = name.split('.');
      expect(refusals).toContainEqual(
        expect.stringMatching(`^the constructor of ${type} takes arguments.* for ${name};`),
      );
    }
    expect(refusals).toContainEqual(expect.stringMatching(/^Inherits\.count is inherited from/));
    expect(refusals).toHaveLength(4);
  });

  it('is none where its constructor has only defaults', async () => {
    @Injectable()
    class Defaults {
      readonly limit: number;

      constructor() {
        this.limit = 5;
      }

      async count(): Promise<void> {}
    }
    cpuBound(Defaults, { count: {} });
    expect(await explore({ providers: [Defaults] })).toMatchObject({ refusals: [] });
  });
});

describe('a class with more than one instance', () => {
  @Injectable({ scope: Scope.REQUEST })
  class PerRequest {
    async count(): Promise<void> {}
  }
  @Injectable({ scope: Scope.TRANSIENT })
  class PerConsumer {
    async count(): Promise<void> {}
  }
  @Injectable()
  class AboveRequest {
    constructor(@Inject(PerRequest) readonly below: PerRequest) {}
    async count(): Promise<void> {}
  }
  cpuBound(PerRequest, { count: {} });
  cpuBound(PerConsumer, { count: {} });
  cpuBound(AboveRequest, { count: {} });

  it.each([
    ['of each request', [PerRequest], 'PerRequest.count'],
    ['of each consumer', [PerConsumer], 'PerConsumer.count'],
  ])('is refused: %s', async (_, providers: Type[], name) => {
    const { found, refusals } = await explore({ providers });
    expect(found).toEqual([]);
    expect(refusals).toEqual([expect.stringContaining(`${name} belongs to a class with`)]);
  });

  it('is refused also where that is so only for what it is injected with', async () => {
    const { refusals } = await explore({ providers: [PerRequest, AboveRequest] }, true);
    expect(refusals).toContainEqual(
      expect.stringContaining('AboveRequest.count belongs to a class with'),
    );
  });

  it('is refused also as a controller', async () => {
    @Controller({ scope: Scope.REQUEST })
    class Scoped {
      @Get()
      count(): void {}
    }
    cpuBound(Scoped, { count: {} });
    const { refusals } = await explore({ controllers: [Scoped] });
    expect(refusals).toEqual([expect.stringContaining('Scoped.count belongs to a class with')]);
  });
});

describe('refusals', () => {
  it('are all there, not the first alone, and each once', async () => {
    @Controller()
    class Takes {
      @Get('a')
      a(@Req() request: object): object {
        return request;
      }

      @Get('b')
      b(@Req() request: object): object {
        return request;
      }
    }
    cpuBound(Takes, { a: {}, b: {} });
    @Module({ providers: [Plain, WithDependency] })
    class Feature {}
    const { refusals } = await explore({
      imports: [Feature],
      controllers: [Takes],
      providers: [Plain, WithDependency],
    });
    expect(refusals.map((refusal) => refusal.slice(0, 15)).sort()).toEqual([
      'Takes.a takes @',
      'Takes.b takes @',
      'the constructor',
    ]);
  });

  it('name two methods that have one name', async () => {
    @Injectable()
    class Cats {
      async count(): Promise<void> {}
    }
    @Injectable()
    class Dogs {
      async count(): Promise<void> {}
    }
    cpuBound(Cats, { count: { name: 'counting' } });
    cpuBound(Dogs, { count: { name: 'counting' } });
    const { refusals } = await explore({ providers: [Cats, Dogs] });
    const place = `${import.meta.filename}:\\d+:\\d+ < [\\d: <]+`;
    expect(refusals).toEqual([
      expect.stringMatching(
        `^two @CpuBound\\(\\) methods are called "counting" \\(${place} and ${place}\\); give one a name of its own: @CpuBound\\({ name: '…' }\\)$`,
      ),
    ]);
  });

  it('name two classes that have one name', async () => {
    const twin = () => {
      @Injectable()
      class Cats {
        async count(): Promise<void> {}
      }
      return cpuBound(Cats, { count: {} });
    };
    const { refusals } = await explore({ providers: [twin(), twin()] });
    expect(refusals).toEqual([expect.stringContaining('are called "Cats.count"')]);
  });
});
