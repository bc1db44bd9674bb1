import type { Server } from 'node:http';
import type net from 'node:net';
import tls from 'node:tls';
import type { ListenTarget } from '../../contract/ipc/index.js';
import { BACKLOG } from '../../contract/process/accept-queue.js';
import type { HttpApp } from '../life/worker-app.interface.js';

/** What is lost when `createApp()` does what is ours to do. */
export const ALREADY_LISTENING =
  'createApp() has already called listen(): the app does not listen on the socket that the primary holds, so connections made while no worker is alive are refused, and "port" and "host" of bootstrap() have no effect; leave the call out';

/** An overload of `listen()` that Node documents and its types leave out. */
interface HandleListener {
  listen(handle: unknown, backlog: number): void;
}

/** Internals of net.Server that a handle of a unix socket needs; the same on Node 20 to 26. */
interface ServerInternals {
  _handle: unknown;
  _pipeName: string;
  _listen2(address: null, port: -1, addressType: -1, backlog: number): void;
}

/**
 * Makes the app listen. With a handle the app's own call of `server.listen()`
 * is led to the primary's socket, whatever the adapter passes to it: so the
 * adapter's and Nest's own state are right, on Express and on Fastify.
 *
 * @returns where the app can be reached.
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
    // The adapter's override is gone: this is Node's own listen().
    (server as unknown as HandleListener).listen(handle, BACKLOG);
    return server;
  }
  // server.listen(handle) takes TCP handles only: a pipe would be sent to the
  // primary by the number of its descriptor, which means another file there.
  const internals = server as unknown as ServerInternals;
  internals._handle = handle;
  internals._pipeName = target.path;
  internals._listen2(null, -1, -1, BACKLOG);
  return server;
}

/** The address of a listening server: port 0 has become a real one. */
export function addressOf(server: net.Server): string {
  const bound = server.address();
  if (bound === null || typeof bound === 'string') return `unix:${bound ?? ''}`;
  const host = bound.address === '::' || bound.address === '0.0.0.0' ? 'localhost' : bound.address;
  const scheme = server instanceof tls.Server ? 'https' : 'http';
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${bound.port}`;
}
