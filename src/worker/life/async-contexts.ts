import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * Makes Node set up its asynchronous contexts early. Call this function before anything else.
 *
 * Since Node 24 the first use of AsyncLocalStorage swaps the prototype of an internal class. Without
 * this call the swap would happen late, because a worker imports its app last. V8 would keep the new
 * prototype as a dictionary, and would again and again compile and discard code that enters a
 * context. That costs 8 % of the CPU time of a light request.
 */
export function settleAsyncContexts(): void {
  // The storage stays empty, so it does not make Node 20 track asynchronous calls.
  void new AsyncLocalStorage();
}
