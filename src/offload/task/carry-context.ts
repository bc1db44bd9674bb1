/** A context that travels with each call: an `AsyncLocalStorage` is one. */
export interface ContextStorage<T> {
  /** What is to travel; `undefined` where there is nothing. */
  getStore(): T | undefined;
  /** Runs `body` with what has arrived. */
  run<R>(store: T, body: () => R): R;
}

/** The stores of a call, by the name of their storage. */
export type CarriedContexts = Readonly<Record<string, unknown>>;

const CARRIED = Symbol.for('nestjs-cluster.carried-contexts');

// On globalThis, like the classes' metadata: a thread has its own, filled by the same imports.
const holder = globalThis as { [CARRIED]?: Map<string, ContextStorage<unknown>> };

/**
 * Carries a small context, such as a request id, into the thread of each
 * `@CpuBound()` call. Call it where the storage is declared, in a file that the
 * class imports, so that the thread has it too:
 *
 * ```ts
 * export const requestContext = new AsyncLocalStorage<{ requestId: string }>();
 * carryContext('request', requestContext);
 * ```
 *
 * The body gets a copy of the store, made by structured clone; its changes to
 * the copy stay there. Calls that are coalesced run in the context of the first.
 */
export function carryContext<T>(name: string, storage: ContextStorage<T>): void {
  (holder[CARRIED] ??= new Map()).set(name, storage as ContextStorage<unknown>);
}

/**
 * The values of the current asynchronous context that travel; `undefined` if there are none.
 *
 * @param warn is told at each call of values that do not travel.
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
        `the carried context "${name}" has symbols for keys, which do not travel: ${lost}; ` +
          `have its getStore() give a plain object of what is to travel, and its run() put that back (docs/cpu-bound-methods.md#contexts)`,
      );
    }
  }
  return captured;
}

/** Structured clone leaves them out without a word. */
function symbolsIn(store: object | null): string {
  return Object.getOwnPropertySymbols(store ?? {})
    .map(String)
    .join(', ');
}

/** Runs `body` in what has arrived. */
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
