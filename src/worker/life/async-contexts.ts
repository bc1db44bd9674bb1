import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * Has Node choose, before it does anything else, how it keeps asynchronous contexts.
 *
 * Since Node 24 the first use of AsyncLocalStorage swaps the prototype of an internal class. Where
 * that comes late, as it does in a worker whose app is imported last, V8 keeps the new prototype
 * as a dictionary, and for the life of the process compiles again and again, and throws away,
 * whatever enters a context: 8 % of the CPU of a light request.
 */
export function settleAsyncContexts(): void {
  // Nothing is stored, so on Node 20 nothing is followed either.
  void new AsyncLocalStorage();
}
