import 'reflect-metadata';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import * as common12 from '@nestjs/common';
import type { ModuleMetadata, Type } from '@nestjs/common';
import * as core12 from '@nestjs/core';
import { describe, expect, it, onTestFinished } from 'vitest';
import { AppCode, instancesOf, moduleGivenTo } from '../../../../src/offload/thread/app-code.js';

type Common = typeof common12;
type Core = typeof core12;

const require11 = createRequire(new URL('../../../fixtures/nest-11/package.json', import.meta.url));
const NESTS = [
  { nest: 'Nest 12', common: common12 as Common, core: core12 as Core },
  {
    nest: 'Nest 11',
    common: require11('@nestjs/common') as Common,
    core: require11('@nestjs/core') as Core,
  },
];

/** A module with a class of its own. */
function moduleOf({ Module }: Common, metadata: ModuleMetadata): Type {
  class Made {}
  Module(metadata)(Made);
  return Made;
}

/** The dependency that a class asks for. */
class Dictionary {
  readonly word = 'cat';
}
const exported: ModuleMetadata = { providers: [Dictionary], exports: [Dictionary] };

/** Makes metadata of a module that provides a {@link Dictionary}. */
type Way = (nest: Common, root: Type) => ModuleMetadata;

const WAYS: Record<string, Way> = {
  'a provider': () => exported,
  'a re-exported provider': (nest) => {
    const inner = moduleOf(nest, exported);
    return { imports: [moduleOf(nest, { imports: [inner], exports: [inner] })] };
  },
  'a provider of a module that imports it in turn': (nest, root) => {
    const turning = moduleOf(nest, { ...exported, imports: [nest.forwardRef(() => root)] });
    return { imports: [nest.forwardRef(() => turning)] };
  },
};

describe.each(NESTS)('a class that a thread makes on $nest', ({ common, core }) => {
  const { forwardRef, Inject, Injectable, Optional } = common;

  /** The context of a thread with this `offload.module`, which imports yet another module. */
  async function build(way: Way) {
    class Root {}
    const metadata = way(common, Root);
    const imports = [...(metadata.imports ?? []), moduleOf(common, {})];
    common.Module({ ...metadata, imports })(Root);
    const options = { logger: false, abortOnError: false } as const;
    const context = await core.NestFactory.createApplicationContext(Root, options);
    onTestFinished(() => context.close());
    return instancesOf(context, Root, core.ModuleRef);
  }

  /** With one argument, decorated by these. */
  function wordsClass(...decorators: readonly ParameterDecorator[]) {
    class Words {
      asked: unknown;
      constructor(asked?: unknown) {
        this.asked = asked;
      }
    }
    Injectable()(Words);
    for (const decorate of decorators) decorate(Words, undefined, 0);
    return Words;
  }

  it.each(Object.keys(WAYS))('is injected with %s of offload.module', async (way) => {
    const words = await (await build(WAYS[way]!))(wordsClass(Inject(Dictionary)));
    expect(words).toEqual({ asked: new Dictionary() });
  });

  it('is injected by a forward reference and by a property, and optionally with nothing', async () => {
    const instanceOf = await build(() => ({ providers: [Dictionary] }));
    const byReference = wordsClass(Inject(forwardRef(() => Dictionary)));
    expect(await instanceOf(byReference)).toEqual({ asked: new Dictionary() });
    const byProperty = wordsClass(Optional(), Inject('nothing'));
    Inject(Dictionary)(byProperty.prototype, 'asked');
    expect(await instanceOf(byProperty)).toEqual({ asked: new Dictionary() });
  });

  it('is the one of offload.module, else of a module that it imports', async () => {
    const [own, imported, controller] = [1, 2, 3].map(() => wordsClass(Inject('word')));
    const instanceOf = await build(() => ({
      providers: [{ provide: 'word', useValue: 'cat' }, own!],
      controllers: [controller!],
      imports: [
        moduleOf(common, { providers: [{ provide: 'word', useValue: 'dog' }, own!, imported!] }),
      ],
    }));
    const instance = await instanceOf(own!);
    expect(instance).toEqual({ asked: 'cat' });
    expect(await instanceOf(own!)).toBe(instance);
    expect(await instanceOf(imported!)).toEqual({ asked: 'dog' });
    expect(await instanceOf(controller!)).toEqual({ asked: 'cat' });
  });

  it('needs the dependencies of guards of a controller in the thread', async () => {
    const guard = wordsClass(Inject('word'));
    const controller = wordsClass();
    common.UseGuards(guard as never)(controller);
    const word = { provide: 'word', useValue: 'cat' };
    const instanceOf = await build(() => ({ controllers: [controller], providers: [word] }));
    expect(await instanceOf(guard)).toEqual({ asked: 'cat' });
    await expect(build(() => ({ controllers: [controller] }))).rejects.toThrow(
      /can't resolve dependencies of the Words \(\?\)/,
    );
  });

  it('cannot be made if nothing provides its dependencies', async () => {
    const instanceOf = await build(() => ({ providers: [Dictionary] }));
    await expect(instanceOf(wordsClass(Inject('nothing')))).rejects.toThrow(
      /can't resolve dependencies of the Words \(\?\)/,
    );
  });
});

describe('the module that forRoot() was given', () => {
  const file = fileURLToPath(new URL('../../../fixtures/behaviours/pooled.mjs', import.meta.url));
  const given = (name: string) => moduleGivenTo({ name, file }, new AppCode(undefined));

  it('is found among the exports of its file if the import calls no forRoot()', async () => {
    expect(await given('PooledModule')).toHaveProperty('name', 'PooledModule');
  });

  it('is not found if it is not exported either', async () => {
    expect(await given('HiddenModule')).toBe(
      `offload.module (HiddenModule) cannot be found by a thread: it has imported ${file}, which calls forRoot(), ` +
        'but forRoot() was not called meanwhile. Call it where a @Module() is declared, or export HiddenModule from that file',
    );
  });
});
