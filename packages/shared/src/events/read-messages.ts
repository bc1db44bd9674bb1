/** Maximum number of unread messages. Beyond it, the reader ends with an error. */
const MAX_WAITING = 10_000;

/**
 * Iterates over messages, for `for await` and for subscriptions of GraphQL.
 *
 * @param begin called at the first `next()`; resolves with a function that ends the subscription.
 * @param closing ends the iteration.
 */
export function readMessages<T>(
  begin: (onMessage: (message: T) => void) => Promise<() => void>,
  closing: AbortSignal,
): AsyncIterableIterator<T> {
  let begun: Promise<() => void> | undefined;
  let over = false;
  let failure: Error | undefined;
  const messages = new ReadableStream<T>(
    {
      pull: async (queue) => {
        await (begun ??= begin((message) => {
          if (over) return;
          queue.enqueue(message);
          if (queue.desiredSize! >= -MAX_WAITING) return;
          failure = new Error(
            `more than ${MAX_WAITING} messages waited to be read from ClusterPubSub; subscribe anew, and read faster`,
          );
          end();
        }));
      },
      cancel: () => void begun?.then((unsubscribe) => unsubscribe()),
    },
    { highWaterMark: 0 }, // begin() is called at the first read
  );
  const reader = messages.getReader();
  const end = (): void => {
    over = true;
    closing.removeEventListener('abort', end);
    void reader.cancel();
  };
  closing.addEventListener('abort', end);
  if (closing.aborted) end();
  return {
    next: async () => {
      const result = await reader.read();
      if (!result.done || failure === undefined) return result;
      const thrown = failure;
      failure = undefined;
      throw thrown;
    },
    return: async () => {
      end();
      return { value: undefined, done: true };
    },
    throw: async (error) => {
      end();
      throw error;
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
