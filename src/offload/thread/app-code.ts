import type { INestApplicationContext, Type } from '@nestjs/common';
import type { ModuleRef } from '@nestjs/core';
import { pathToFileURL } from 'node:url';
import { isMainThread } from 'node:worker_threads';
import type { Class } from '../../contract/options/module.js';
import { appImport } from '../../contract/snapshot/app-import.js';
import type { MainFile, ThreadPlan } from './plan.js';

/** Evaluates the code of the app in a thread. */
export class AppCode {
  #whole: Promise<unknown> | undefined;

  constructor(private readonly main: MainFile | undefined) {}

  /**
   * Imports a file that declares a class. If a bundler made the file, the import may only define
   * modules that other code evaluates. So the thread then imports the whole app, as a worker does,
   * without creating it.
   *
   * @param find looks for the class, also in the exports of the file.
   */
  async evaluate<T>(
    file: string,
    find: (exports: object) => T | undefined,
  ): Promise<T | undefined> {
    const exports = (await import(pathToFileURL(file).href)) as object;
    const found = find(exports);
    if (found !== undefined || this.main === undefined) return found;
    await (this.#whole ??= importWhole(this.main));
    return find(exports);
  }
}

async function importWhole({ file, importsApp }: MainFile): Promise<void> {
  await import(pathToFileURL(file).href);
  if (importsApp) await appImport()?.({} as never);
}

const GIVEN = Symbol.for('nestjs-cluster.offload-module');

// A class cannot be sent to a thread. Instead the thread imports the file that calls forRoot() with
// the class, so that forRoot() is called in the thread too.
const holder = globalThis as { [GIVEN]?: Class | undefined };

/** Called by `forRoot()`. In a thread, stores the module that `forRoot()` was given. */
export function noteModuleInThread(module: Class | undefined): void {
  if (!isMainThread && module !== undefined) holder[GIVEN] = module;
}

/** The class of `offload.module` in this thread, or the reason why it was not found. */
export async function moduleGivenTo(
  { name, file }: NonNullable<ThreadPlan['module']>,
  code: AppCode,
): Promise<Class | string> {
  if (file === undefined)
    return `offload.module (${name}): forRoot() was called outside of any file`;
  const found = await code.evaluate(
    file,
    (exports) => holder[GIVEN] ?? (exports as Record<string, unknown>)[name],
  );
  if (typeof found === 'function') return found as Class;
  return (
    `offload.module (${name}) cannot be found by a thread: it has imported ${file}, which calls forRoot(), ` +
    `but forRoot() was not called meanwhile. Call it where a @Module() is declared, or export ${name} from that file`
  );
}

/**
 * Returns a function that finds the instance of a class: in `module`, else in any other module,
 * else a new instance with providers of `module`.
 *
 * @param key Nest's class `ModuleRef`, which the caller has loaded.
 */
export function instancesOf(
  context: INestApplicationContext,
  module: Class,
  key: typeof ModuleRef,
): <T>(type: new () => T) => Promise<T> {
  // Without select(), Nest would return the ModuleRef of the module that it created last.
  const moduleRef = context.select(module as Type).get(key, { strict: true });
  return async (type) => {
    for (const strict of [true, false]) {
      try {
        return moduleRef.get(type, { strict });
      } catch {
        // No instance in this scope: the wider one is tried, then one is created.
      }
    }
    return moduleRef.create(type);
  };
}
