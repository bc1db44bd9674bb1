import type { INestApplicationContext, Type } from '@nestjs/common';
import type { ModuleRef } from '@nestjs/core';
import { pathToFileURL } from 'node:url';
import { isMainThread } from 'node:worker_threads';
import type { Class } from '../../contract/options/module.js';
import type { ThreadPlan } from './plan.js';

const GIVEN = Symbol.for('nestjs-cluster.offload-module');

// A class cannot be sent to a thread. But the file that calls forRoot() with it
// can be imported there, and then calls forRoot() there too.
const holder = globalThis as { [GIVEN]?: Class | undefined };

/** Called by `forRoot()`: in a thread, what it was given is remembered. */
export function noteModuleInThread(module: Class | undefined): void {
  if (!isMainThread && module !== undefined) holder[GIVEN] = module;
}

/** The class of `offload.module` in this thread, or why it cannot be had. */
export async function moduleGivenTo({
  name,
  file,
}: NonNullable<ThreadPlan['module']>): Promise<Class | string> {
  if (file === undefined)
    return `offload.module (${name}): forRoot() was called outside of any file`;
  const exports = (await import(pathToFileURL(file).href)) as Record<string, unknown>;
  const found = holder[GIVEN] ?? exports[name];
  if (typeof found === 'function') return found as Class;
  return (
    `offload.module (${name}) cannot be found by a thread: it has imported ${file}, which calls forRoot(), ` +
    `but forRoot() was not called meanwhile. Call it where a @Module() is declared, or export ${name} from that file`
  );
}

/**
 * Gives instances of classes: first from `module`, then from a module that it imports, else a new one
 * made of the providers that `module` sees.
 *
 * @param key the class of Nest itself, loaded by the caller.
 */
export function instancesOf(
  context: INestApplicationContext,
  module: Class,
  key: typeof ModuleRef,
): <T>(type: new () => T) => Promise<T> {
  // Without select() it is the ModuleRef of whichever module Nest came to last.
  const moduleRef = context.select(module as Type).get(key, { strict: true });
  return async (type) => {
    for (const strict of [true, false]) {
      try {
        return moduleRef.get(type, { strict });
      } catch {
        // Nest has none there.
      }
    }
    return moduleRef.create(type);
  };
}
