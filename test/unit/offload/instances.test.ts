import 'reflect-metadata';
import type { ModuleMetadata, Type } from '@nestjs/common';
import { expect, it, onTestFinished } from 'vitest';
import { instancesOf } from '../../../src/offload/thread/thread-host.js';
import { NESTS } from '../support/nests.js';

/** A module with a class of its own. */
function moduleOf({ Module }: (typeof NESTS)[number]['common'], metadata: ModuleMetadata): Type {
  class Made {}
  Module(metadata)(Made);
  return Made;
}

it.each(NESTS)(
  'the instance of a class is the one of offload.module, else of an imported module, else a new one, on $nest',
  async ({ common, core }) => {
    /** A class that is injected with `word`. */
    const wordsClass = () => {
      class Words {
        constructor(readonly asked?: unknown) {}
      }
      common.Injectable()(Words);
      common.Inject('word')(Words, undefined, 0);
      return Words;
    };
    const [own, imported, other] = [wordsClass(), wordsClass(), wordsClass()];
    const word = (useValue: string) => ({ provide: 'word', useValue });
    const root = moduleOf(common, {
      providers: [word('cat'), own],
      imports: [
        moduleOf(common, { providers: [word('dog'), own, imported] }),
        moduleOf(common, {}),
      ],
    });
    const options = { logger: false, abortOnError: false } as const;
    const context = await core.NestFactory.createApplicationContext(root, options);
    onTestFinished(() => context.close());
    const instanceOf = instancesOf(context, root, core.ModuleRef);

    const instance = await instanceOf(own);
    expect(instance).toEqual({ asked: 'cat' });
    expect(await instanceOf(own)).toBe(instance);
    expect(await instanceOf(imported)).toEqual({ asked: 'dog' });
    expect(await instanceOf(other)).toEqual({ asked: 'cat' });
  },
);
