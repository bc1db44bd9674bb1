/** The reason for which an app closes. */
export interface ClosableApp {
  /** @param signal for the app's shutdown hooks: why it is closed. */
  close(signal?: string): Promise<void>;
}

/**
 * Makes `app.close()` of the app itself, in a listener of its own to SIGTERM
 * for example, a request to leave: closed at once, it would take the database
 * from requests in flight, and its hooks would run again after the drain.
 *
 * @param leave drains the process and closes the app.
 * @returns the app, with the `close()` that it had.
 */
export function takeOverClose<A extends ClosableApp>(
  app: A,
  leave: (signal?: string) => Promise<unknown>,
): ClosableApp {
  const own = Object.getOwnPropertyDescriptor(app, 'close') as { value?: A['close'] } | undefined;
  const close =
    own?.value ?? (Reflect.get(Object.getPrototypeOf(app) as object, 'close') as A['close']);
  let ours = false;
  // Nest's app is a proxy that ignores assignments. Through it `this` is the real app.
  Object.defineProperty(app, 'close', {
    configurable: true,
    writable: true,
    async value(this: A, signal?: string): Promise<void> {
      if (ours) return close.call(this, signal);
      await leave(signal);
    },
  });
  return {
    close(signal) {
      ours = true;
      try {
        return app.close(signal);
      } finally {
        ours = false;
      }
    },
  };
}
