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

describe.each(NESTS)('a class that a thread makes on $nest', ({ common, core }) => {
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
      asked: unknown;
      constructor(asked?: unknown) {
        this.asked = asked;
      }
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
