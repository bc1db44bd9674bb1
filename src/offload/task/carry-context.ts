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
 * copied back. Coalesced calls run in the context of the first call.
 */
export function carryContext<T>(name: string, storage: ContextStorage<T>): void {
  (holder[CARRIED] ??= new Map()).set(name, storage as ContextStorage<unknown>);
}

/**
 * The values to copy from the current asynchronous context; `undefined` if there are none.
 *
 * @param warn is called, at each call, about properties that cannot be copied.
 */
export function captureContexts(warn?: (message: string) => void): CarriedContexts | undefined {
  let captured: Record<string, unknown> | undefined;
  for (const [name, storage] of holder[CARRIED] ?? []) {
    const store = storage.getStore();
    if (store === undefined) continue;
    (captured ??= {})[name] = store;
    const lost = warn && typeof store === 'object' ? symbolsIn(store) : '';
    if (lost !== '') {
      warn?.(
        `the carried context "${name}" has symbols for keys, which do not travel: ${lost}; have its getStore() give a plain object of what is to travel, and its run() put that back`,
      );
    }
  }
  return captured;
}

/** The symbol keys of a store, which structured clone leaves out silently. */
function symbolsIn(store: object | null): string {
  return Object.getOwnPropertySymbols(store ?? {})
    .map(String)
    .join(', ');
}

/** Runs `body` in the contexts that were copied. */
export function runInContexts<R>(contexts: CarriedContexts | undefined, body: () => R): R {
  if (contexts === undefined) return body();
  let run = body;
  for (const [name, storage] of holder[CARRIED] ?? []) {
    if (!Object.hasOwn(contexts, name)) continue;
    const inner = run;
    run = () => storage.run(contexts[name], inner);
  }
  return run();
}
