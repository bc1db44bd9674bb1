export type RpcHandler = (...args: unknown[]) => unknown;

/** The used part of an Observable. Declared here, because rxjs is a dependency of the app. */
interface Observable {
  subscribe(...args: unknown[]): { add(teardown: () => void): void };
}

/**
 * Wraps a handler to report when it begins and when it has given its last answer. The proxy keeps
 * all properties of the function, because Nest stores the handler's metadata there.
 *
 * @param begin is called with the handler's arguments. Returns a function that is called once, at the end.
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
  // Overrides subscribe() on a derived object, because the app may share the stream itself.
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
