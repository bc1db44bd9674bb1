import 'reflect-metadata';
import { createRequire } from 'node:module';
import * as common12 from '@nestjs/common';
import type { ModuleMetadata, Type } from '@nestjs/common';
import * as core12 from '@nestjs/core';
import { describe, expect, it, onTestFinished } from 'vitest';
import { instancesOf } from '../../../src/offload/thread/thread-host.js';

type Common = typeof common12;
type Core = typeof core12;

const require11 = createRequire(new URL('../../fixtures/nest-11/package.json', import.meta.url));
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

describe.each(NESTS)('the instance of a class in a thread on $nest', ({ common, core }) => {
  /** The context of a thread with this `offload.module`, which imports yet another module. */
  async function build(metadata: ModuleMetadata) {
    const imports = [...(metadata.imports ?? []), moduleOf(common, {})];
    const root = moduleOf(common, { ...metadata, imports });
    const options = { logger: false, abortOnError: false } as const;
    const context = await core.NestFactory.createApplicationContext(root, options);
    onTestFinished(() => context.close());
    return instancesOf(context, root, core.ModuleRef);
  }

  /** A class that is injected with `token`. */
  function wordsClass(token: string) {
    class Words {
      constructor(readonly asked?: unknown) {}
    }
    common.Injectable()(Words);
    common.Inject(token)(Words, undefined, 0);
    return Words;
  }

  it('is the one of offload.module, else of a module that it imports, else a new one', async () => {
    const [own, imported, controller, other] = [1, 2, 3, 4].map(() => wordsClass('word'));
    const instanceOf = await build({
      providers: [{ provide: 'word', useValue: 'cat' }, own!],
      controllers: [controller!],
      imports: [
        moduleOf(common, { providers: [{ provide: 'word', useValue: 'dog' }, own!, imported!] }),
      ],
    });
    const instance = await instanceOf(own!);
    expect(instance).toEqual({ asked: 'cat' });
    expect(await instanceOf(own!)).toBe(instance);
    expect(await instanceOf(imported!)).toEqual({ asked: 'dog' });
    for (const type of [controller!, other!]) {
      expect(await instanceOf(type)).toEqual({ asked: 'cat' });
    }
  });

  it('cannot be made if nothing provides its dependencies', async () => {
    const instanceOf = await build({});
    await expect(instanceOf(wordsClass('nothing'))).rejects.toThrow(
      /can't resolve dependencies of the Words \(\?\)/,
    );
  });
});
