/** A handler of messages, as Nest registers it. */
export type RpcHandler = (...args: unknown[]) => unknown;

/** The used part of an Observable: rxjs belongs to the app. */
interface Observable {
  subscribe(...args: unknown[]): { add(teardown: () => void): void };
}

/**
 * A handler that tells when it begins and when its last answer is given, and is
 * the same otherwise: Nest keeps what it knows of a handler on the function.
 *
 * @param begin is called with the handler's arguments; what it returns, once, at the end.
 */
export function countedHandler(
  handler: RpcHandler,
  begin: (args: readonly unknown[]) => () => void,
): RpcHandler {
  return new Proxy(handler, {
    apply(target, self, args: unknown[]) {
      const end = begin(args);
      try {
        return untilOver(Reflect.apply(target, self, args), end);
      } catch (error) {
        end();
        throw error;
      }
    },
  });
}

function untilOver(result: unknown, end: () => void): unknown {
  if (result instanceof Promise) {
    return result.then(
      (value) => untilOver(value, end),
      (error: unknown) => {
        end();
        throw error;
      },
    );
  }
  if (!isObservable(result)) {
    end();
    return result;
  }
  // Not on the stream itself, which may be the app's own and shared.
  return Object.create(result, {
    subscribe: {
      value(...args: unknown[]) {
        const subscription = result.subscribe(...args);
        subscription.add(end);
        return subscription;
      },
    },
  }) as Observable;
}

function isObservable(value: unknown): value is Observable {
  const known = (value ?? {}) as { lift?: unknown; subscribe?: unknown };
  return typeof known.lift === 'function' && typeof known.subscribe === 'function';
}
