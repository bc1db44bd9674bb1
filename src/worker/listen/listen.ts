import type { Server } from 'node:http';
import type net from 'node:net';
import tls from 'node:tls';
import { ClusterConfigurationError } from '../../contract/errors/errors.js';
import type { ListenTarget } from '../../contract/messages.js';
import { BACKLOG } from '../../contract/process/accept-queue.js';
import type { HttpApp } from '../boot/served-app.js';

export const ALREADY_LISTENING =
  'createApp() has already called listen(): the app is not using the primary\'s socket, so connections are refused while no worker is alive, and "port" and "host" of bootstrap() are ignored; remove the call';

/** The error if a framework has replaced the app's `listen()`. */
const SILENT =
  "app.listen() has returned, but the HTTP server is not listening; do not replace the app's listen() method";

/** The net.Server internals for listening on a unix socket's handle (Node 20 to 26). */
interface ServerInternals {
  _handle: unknown;
  _pipeName: string;
  _listen2(address: null, port: -1, addressType: -1, backlog: number): void;
}

/**
 * Makes the app listen. With a handle, `server.listen()` is replaced: it listens on the handle and
 * ignores its arguments. The adapter calls it as usual, so that the adapter and Nest know that the
 * app listens.
 *
 * @param handle the primary's socket. Without it, the app opens its own socket.
 * @returns the app's URL, or `unix:` and the path.
 */
export async function listen(
  app: Pick<HttpApp, 'getHttpServer' | 'listen'>,
  target: ListenTarget,
  handle?: unknown,
): Promise<string> {
  const server = app.getHttpServer() as Server;
  if (handle !== undefined) {
    server.listen = (...args: unknown[]) => {
      Reflect.deleteProperty(server, 'listen');
      const callback = args.at(-1);
      if (typeof callback === 'function') server.once('listening', callback as () => void);
      return takeHandle(server, target, handle);
    };
  }
  await (target.kind === 'unix' ? app.listen(target.path) : app.listen(target.port, target.host));
  return addressOf(server);
}

function takeHandle(server: Server, target: ListenTarget, handle: unknown): Server {
  if (target.kind === 'tcp') {
    listenOn(server, handle); // calls Node's listen(), because our replacement has been deleted
    return server;
  }
  // server.listen(handle) works only for TCP handles. In a cluster worker, Node would send a pipe's
  // descriptor number to the primary, where the number refers to another file.
  const internals = server as unknown as ServerInternals;
  internals._handle = handle;
  internals._pipeName = target.path;
  internals._listen2(null, -1, -1, BACKLOG);
  return server;
}

/** Listens on a TCP handle. Node documents this overload of `listen()`, but its types lack it. */
export function listenOn(server: net.Server, handle: unknown): void {
  (server as unknown as { listen(handle: unknown, backlog: number): void }).listen(handle, BACKLOG);
}

/** @returns the URL of a server, with its actual port if port 0 was configured. @throws if it does not listen. */
export function addressOf(server: net.Server): string {
  const bound = server.address();
  if (bound === null) throw new ClusterConfigurationError(SILENT);
  if (typeof bound === 'string') return `unix:${bound}`;
  const host = bound.address === '::' || bound.address === '0.0.0.0' ? 'localhost' : bound.address;
  const scheme = server instanceof tls.Server ? 'https' : 'http';
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${bound.port}`;
}
