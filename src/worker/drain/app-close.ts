import type { WorkerApp } from '../life/worker-app.interface.js';

type Closable = Pick<WorkerApp, 'close'>;

/**
 * Makes `app.close()` of the app itself, in a listener of its own to SIGTERM for example, a request
 * to leave: closed at once, it would take the database from requests in flight, and its hooks would
 * run again after the drain.
 *
 * @param leave drains the process and closes the app.
 * @returns closes the app, as `close()` did before.
 */
export function takeOverClose(
  app: Closable,
  leave: (signal?: string) => Promise<unknown>,
): Closable['close'] {
  const own = Object.getOwnPropertyDescriptor(app, 'close')?.value as Closable['close'] | undefined;
  const close = own ?? (Reflect.get(Object.getPrototypeOf(app) as object, 'close') as typeof own)!;
  let isOurs = false;
  // Nest's app is a proxy that ignores assignments. Through it `this` is the real app.
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
