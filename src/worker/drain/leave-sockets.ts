import net from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { emptyAndClose, type ListeningHandle } from '../../contract/process/accept-queue.js';

/** Maximum wait for the primary to close its sockets. New connections are served during the wait. */
const PRIMARY_PATIENCE_MS = 5_000;

/**
 * Closes only the server's listening socket. `http.Server.close()` would also destroy idle
 * connections and stop the checks for slow senders (https://github.com/nodejs/node/issues/60617).
 */
export function stopAccepting(server: net.Server): void {
  if (server.listening) net.Server.prototype.close.call(server);
}

/**
 * Lets the app close `server` in a hook after we have closed its socket. Node's `close()` fails for
 * a server that does not listen, and the app could take that for a failed shutdown. The app's next
 * `close()` only waits for the server's connections instead. Later calls reach Node's `close()`.
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
 * Closes sockets from which no other process will accept. First accepts the connections in their
 * backlogs. Each process that listens on the sockets must call this.
 *
 * @param released resolves when the primary has closed the sockets. If the primary closed them after
 *   this process, connections that came in between would be reset.
 */
export async function emptySockets(
  servers: readonly net.Server[],
  released: Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const patience = delay(PRIMARY_PATIENCE_MS, undefined, { signal }).catch(() => {});
  await Promise.race([released, patience]);
  const listening = servers.filter((server) => server.listening);
  await Promise.all(
    listening.map((server) => emptyAndClose(handleOf(server), signal, () => stopAccepting(server))),
  );
}

function handleOf(server: net.Server): ListeningHandle {
  return (server as unknown as { _handle: ListeningHandle })._handle;
}
