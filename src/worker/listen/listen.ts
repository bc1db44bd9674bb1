import type { Server } from 'node:http';
import type net from 'node:net';
import tls from 'node:tls';
import { ClusterConfigurationError } from '../../contract/errors/errors.js';
import type { ListenTarget } from '../../contract/messages.js';
import { BACKLOG } from '../../contract/process/accept-queue.js';
import type { HttpApp } from '../boot/served-app.js';

/** The warning for an app whose `createApp()` called `listen()` itself. */
export const ALREADY_LISTENING =
  'createApp() has already called listen(): the app does not listen on the socket that the primary holds, so connections made while no worker is alive are refused, and "port" and "host" of bootstrap() have no effect; remove the call';

/** The error for an app whose `listen()` was replaced by something that does not listen. */
const SILENT =
  'app.listen() has returned, but the HTTP server is not listening; do not replace listen() of the app';

/** Internals of net.Server, for listening on the handle of a unix socket. Same on Node 20 to 26. */
interface ServerInternals {
  _handle: unknown;
  _pipeName: string;
  _listen2(address: null, port: -1, addressType: -1, backlog: number): void;
}

/**
 * Makes the app listen. If a handle is given, the adapter's call of `server.listen()` listens on the
 * handle and ignores the call's arguments. The adapter makes the call itself, so that its own state
 * and Nest's state are right, on Express and on Fastify.
 *
 * @param handle the primary's socket; if missing, the app opens a socket at the target's address.
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
    listenOn(server, handle); // our override of listen() has been deleted
    return server;
  }
  // server.listen(handle) works for TCP handles only. In a cluster worker, Node would send the
  // descriptor number of a pipe to the primary, where that number means another file.
  const internals = server as unknown as ServerInternals;
  internals._handle = handle;
  internals._pipeName = target.path;
  internals._listen2(null, -1, -1, BACKLOG);
  return server;
}

/** Listens on a TCP handle, by an overload of `listen()` that Node documents and its types leave out. */
export function listenOn(server: net.Server, handle: unknown): void {
  (server as unknown as { listen(handle: unknown, backlog: number): void }).listen(handle, BACKLOG);
}

/** @returns the URL of a server, with the port that the OS chose if the port was 0. @throws if it does not listen. */
export function addressOf(server: net.Server): string {
  const bound = server.address();
  if (bound === null) throw new ClusterConfigurationError(SILENT);
  if (typeof bound === 'string') return `unix:${bound}`;
  const host = bound.address === '::' || bound.address === '0.0.0.0' ? 'localhost' : bound.address;
  const scheme = server instanceof tls.Server ? 'https' : 'http';
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${bound.port}`;
}
