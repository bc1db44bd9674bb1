import { traceContext } from './trace-context.js';

/** A context that is copied to the thread of each call, such as an `AsyncLocalStorage`. */
export interface ContextStorage<T> {
  /** The value to copy; `undefined` if there is none. */
  getStore(): T | undefined;
  /** Runs `body` with the copied value. */
  run<R>(store: T, body: () => R): R;
}

/** The values that are copied with a call, by the name of their storage. */
export type CarriedContexts = Readonly<Record<string, unknown>>;

const CARRIED = Symbol.for('nestjs-cluster.carried-contexts');

// On globalThis, so that two copies of this package share the storages. A thread has its own
// storages, declared by the same imports.
const holder = globalThis as { [CARRIED]?: Map<string, ContextStorage<unknown>> };

function storages(): Map<string, ContextStorage<unknown>> {
  return (holder[CARRIED] ??= new Map([
    ['nestjs-cluster.trace', traceContext as ContextStorage<unknown>],
  ]));
}

/**
 * Copies a small context, such as a request id, to the thread of each `@CpuBound()` call. Call this
 * function in the file that declares the storage. The class must import that file, so that threads
 * have the storage too:
 *
 * ```ts
 * export const requestContext = new AsyncLocalStorage<{ requestId: string }>();
 * carryContext('request', requestContext);
 * ```
 *
 * The body gets a copy of the store, made by structured clone. Its changes to the copy are not
 * copied back.
 */
export function carryContext<T>(name: string, storage: ContextStorage<T>): void {
  storages().set(name, storage as ContextStorage<unknown>);
}

/** The values to copy from the current asynchronous context; `undefined` if there are none. */
export function captureContexts(): CarriedContexts | undefined {
  let captured: Record<string, unknown> | undefined;
  for (const [name, storage] of storages()) {
    const store = storage.getStore();
    if (store !== undefined) (captured ??= {})[name] = store;
  }
  return captured;
}

/** Runs `body` in the contexts that were copied. */
export function runInContexts<R>(contexts: CarriedContexts | undefined, body: () => R): R {
  if (contexts === undefined) return body();
  let run = body;
  for (const [name, storage] of storages()) {
    if (!Object.hasOwn(contexts, name)) continue;
    const inner = run;
    run = () => storage.run(contexts[name], inner);
  }
  return run();
}
