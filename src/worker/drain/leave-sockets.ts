import net from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { AcceptQueue, type ListeningHandle } from '../../contract/process/accept-queue.js';

/** The primary lets go of a socket within this, unless it is blocked. New connections are served until then. */
const PRIMARY_PATIENCE_MS = 5_000;

/**
 * Closes the listening socket alone. `http.Server.close()` would also destroy
 * idle connections at once and stop the checks for slow senders
 * (https://github.com/nodejs/node/issues/60617).
 */
export function stopAccepting(server: net.Server): void {
  if (server.listening) net.Server.prototype.close.call(server);
}

/**
 * The app may close `server` in a hook, and take the error that Node gives for one that does not
 * listen as the failure of its shutdown: once we have closed its socket, the next `close()` waits
 * for its connections, and that is all. Later calls of `close()` are Node's.
 */
export function expectClose(server: net.Server): void {
  const own = Object.getOwnPropertyDescriptor(server, 'close');
  let closed = false;
  server.once('close', () => (closed = true));
  Object.defineProperty(server, 'close', {
    configurable: true,
    writable: true,
    value: (callback?: (error?: Error) => void): net.Server => {
      if (own === undefined) Reflect.deleteProperty(server, 'close');
      else Object.defineProperty(server, 'close', own);
      if (server.listening) return server.close(callback);
      if (closed) {
        if (callback) process.nextTick(callback);
        return server;
      }
      if (callback) server.once('close', () => callback());
      return server.close();
    },
  });
}

/**
 * Leaves sockets that nobody accepts from afterwards: what the kernel has
 * accepted for them is served first. To be called by each process that listens.
 *
 * @param released resolves once the primary holds them no more. Else it would be
 *   the last to close them, and what came in between would be reset.
 * @returns how many connections were reset in spite of that.
 */
export async function emptySockets(
  servers: readonly net.Server[],
  released: Promise<void>,
  signal: AbortSignal,
): Promise<number> {
  const patience = delay(PRIMARY_PATIENCE_MS, undefined, { signal }).catch(() => {});
  await Promise.race([released, patience]);
  const reset = await Promise.all(servers.map((server) => emptySocket(server, signal)));
  return reset.reduce((sum, each) => sum + each, 0);
}

async function emptySocket(server: net.Server, signal: AbortSignal): Promise<number> {
  if (!server.listening) return 0;
  return new AcceptQueue(handleOf(server)).emptyAndClose(signal, () => stopAccepting(server));
}

function handleOf(server: net.Server): ListeningHandle {
  return (server as unknown as { _handle: ListeningHandle })._handle;
}
