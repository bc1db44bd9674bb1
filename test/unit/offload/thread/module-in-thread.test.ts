import 'reflect-metadata';
import { createRequire } from 'node:module';
import * as common12 from '@nestjs/common';
import type { ModuleMetadata, Type } from '@nestjs/common';
import * as core12 from '@nestjs/core';
import { describe, expect, it, onTestFinished } from 'vitest';
import { instancesOf } from '../../../../src/offload/thread/module-in-thread.js';

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

/** The dependency that a class asks for. `from` names the provider that made it. */
class Dictionary {
  from = 'a class';
}
const dictionary = { provide: Dictionary, useFactory: () => ({ from: 'a factory' }) };
const exported: ModuleMetadata = { providers: [dictionary], exports: [Dictionary] };

/** Makes metadata of a module that provides a {@link Dictionary}. */
type Way = (nest: Common, root: Type) => ModuleMetadata;

const WAYS: Record<string, Way> = {
  'a class': () => ({ providers: [Dictionary] }),
  'a value': () => ({ providers: [{ provide: Dictionary, useValue: { from: 'a value' } }] }),
  'a factory': () => ({ providers: [dictionary] }),
  'an asynchronous factory': () => ({
    providers: [{ provide: Dictionary, useFactory: async () => ({ from: 'a factory' }) }],
  }),
  'an alias': () => ({
    providers: [
      { provide: 'real', useFactory: () => ({ from: 'a factory' }) },
      { provide: Dictionary, useExisting: 'real' },
    ],
  }),
  'an exported provider': (nest) => ({ imports: [moduleOf(nest, exported)] }),
  'a re-exported provider': (nest) => {
    const inner = moduleOf(nest, exported);
    return { imports: [moduleOf(nest, { imports: [inner], exports: [inner] })] };
  },
  'a provider of a global module': (nest) => {
    const everywhere = moduleOf(nest, exported);
    nest.Global()(everywhere);
    return { imports: [moduleOf(nest, { imports: [everywhere] })] };
  },
  'a provider of a dynamic module': (nest) => ({
    imports: [{ module: moduleOf(nest, {}), ...exported }],
  }),
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
    expect(words).toEqual({ asked: { from: expect.any(String) } });
  });

  it('is injected by a forward reference, by a property, and with nothing where that may be', async () => {
    const instanceOf = await build(() => ({ providers: [Dictionary] }));
    const byReference = wordsClass(Inject(forwardRef(() => Dictionary)));
    expect(await instanceOf(byReference)).toEqual({ asked: new Dictionary() });
    const byProperty = wordsClass(Optional(), Inject('nothing'));
    Inject(Dictionary)(byProperty.prototype, 'asked');
    expect(await instanceOf(byProperty)).toEqual({ asked: new Dictionary() });
  });

  it('is the one that offload.module has, or a module which that imports', async () => {
    const [own, imported, controller] = [1, 2, 3].map(() => wordsClass(Inject('word')));
    const instanceOf = await build(() => ({
      providers: [{ provide: 'word', useValue: 'cat' }, own!],
      controllers: [controller!],
      imports: [moduleOf(common, { providers: [{ provide: 'word', useValue: 'dog' }, imported!] })],
    }));
    const instance = await instanceOf(own!);
    expect(instance).toEqual({ asked: 'cat' });
    expect(await instanceOf(own!)).toBe(instance);
    expect(await instanceOf(imported!)).toEqual({ asked: 'dog' });
    expect(await instanceOf(controller!)).toEqual({ asked: 'cat' });
  });

  it('is that of offload.module where a module which it imports has another', async () => {
    const words = wordsClass(Inject('word'));
    const instanceOf = await build(() => ({
      providers: [{ provide: 'word', useValue: 'cat' }, words],
      imports: [moduleOf(common, { providers: [{ provide: 'word', useValue: 'dog' }, words] })],
    }));
    expect(await instanceOf(words)).toEqual({ asked: 'cat' });
  });

  it('brings the guards of a controller into the thread, which need their dependencies there', async () => {
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

  it('cannot be made where nothing provides what it asks for', async () => {
    const instanceOf = await build(() => ({ providers: [Dictionary] }));
    await expect(instanceOf(wordsClass(Inject('nothing')))).rejects.toThrow(
      /can't resolve dependencies of the Words \(\?\)/,
    );
  });
});
