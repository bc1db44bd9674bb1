/** What travels with each call: an `AsyncLocalStorage` is one. */
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
 * `@CpuBound()` call and back. Call it where the storage is declared, in a file
 * that the class imports, so that the thread has it too:
 *
 * ```ts
 * export const requestContext = new AsyncLocalStorage<{ requestId: string }>();
 * carryContext('request', requestContext);
 * ```
 *
 * The store is copied by structured clone. What the body sets in it comes back:
 * properties of an object are assigned to the caller's, entries of a `Map` set
 * in it. Of calls that are coalesced, the first one's travels, to it alone.
 */
export function carryContext<T>(name: string, storage: ContextStorage<T>): void {
  (holder[CARRIED] ??= new Map()).set(name, storage as ContextStorage<unknown>);
}

/** What the current asynchronous context has to travel; `undefined` where there is nothing. */
export function captureContexts(): CarriedContexts | undefined {
  let captured: Record<string, unknown> | undefined;
  for (const [name, storage] of holder[CARRIED] ?? []) {
    const store = storage.getStore();
    if (store !== undefined) (captured ??= {})[name] = store;
  }
  return captured;
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

/** The entries of each store, as they are now. */
type Entries = ReadonlyMap<string, ReadonlyMap<unknown, unknown>>;

/** To be compared with what is there in the end. Called in the contexts. */
export function snapshotContexts(contexts: CarriedContexts | undefined): Entries | undefined {
  return (
    contexts &&
    new Map(Object.keys(contexts).map((name) => [name, new Map(entriesOf(storeOf(name)))]))
  );
}

/** What has been set since: the changed entries of each store, in one of its own kind. */
export function changedContexts(before: Entries | undefined): CarriedContexts | undefined {
  const changed: Record<string, unknown> = {};
  for (const [name, known] of before ?? []) {
    const store = storeOf(name);
    const news = entriesOf(store).filter(([key, value]) => !Object.is(known.get(key), value));
    if (news.length === 0) continue;
    changed[name] = store instanceof Map ? new Map(news) : Object.fromEntries(news);
  }
  return Object.keys(changed).length > 0 ? changed : undefined;
}

function storeOf(name: string): unknown {
  return holder[CARRIED]?.get(name)?.getStore();
}

function entriesOf(store: unknown): [string, unknown][] {
  if (store instanceof Map) return [...store] as [string, unknown][];
  return isObject(store) ? Object.entries(store) : [];
}

/** Takes over what a call has changed in its context. */
export function adoptContexts(contexts: CarriedContexts | undefined): void {
  for (const [name, changed] of Object.entries(contexts ?? {})) {
    const store = storeOf(name);
    if (store instanceof Map && changed instanceof Map) {
      for (const [key, value] of changed) store.set(key, value);
    } else if (isObject(store) && isObject(changed)) {
      Object.assign(store, changed);
    }
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
