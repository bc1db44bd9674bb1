import type { WorkerApp } from '../life/worker-app.interface.js';

type Closable = Pick<WorkerApp, 'close'>;

/**
 * When the app calls `app.close()` itself, for example in its own listener for SIGTERM, drains the
 * process first. If the app closed at once, requests in flight would lose the database, and the
 * app's hooks would run again after the drain.
 *
 * @param leave drains the process and closes the app.
 * @returns the original `app.close()`.
 */
export function takeOverClose(
  app: Closable,
  leave: (signal?: string) => Promise<unknown>,
): Closable['close'] {
  const own = Object.getOwnPropertyDescriptor(app, 'close')?.value as Closable['close'] | undefined;
  const close = own ?? (Reflect.get(Object.getPrototypeOf(app) as object, 'close') as typeof own)!;
  let isOurs = false;
  // Uses defineProperty, because Nest's app is a proxy that ignores assignments. A method that is
  // called through the proxy gets the real app as `this`.
  Object.defineProperty(app, 'close', {
    configurable: true,
    writable: true,
    async value(this: Closable, signal?: string): Promise<void> {
      if (isOurs) return close.call(this, signal);
      await leave(signal);
    },
  });
  return (signal) => {
    isOurs = true;
    try {
      return app.close(signal);
    } finally {
      isOurs = false;
    }
  };
}
