import type { INestApplicationContext, Type } from '@nestjs/common';
import type { ModuleRef } from '@nestjs/core';
import { isMainThread } from 'node:worker_threads';
import type { Class } from '../../contract/options/module.js';
import type { AppCode } from './app-code.js';
import type { ThreadPlan } from './plan.js';

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
