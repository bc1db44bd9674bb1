import { createHash } from 'node:crypto';
import { IoAdapter } from '@nestjs/platform-socket.io';
import { HubChannels, hubOf } from '@nestjs-cluster/shared/internal';
import { extension } from 'nestjs-cluster/extension';
import { shareSessions } from './cluster-sessions.js';
import type { Engine } from './engine.interface.js';
import { HubAdapter, type Namespace } from './hub-adapter.js';

/** The types of the Socket.IO version that Nest's adapter uses. */
type ServerOptions = NonNullable<Parameters<IoAdapter['createIOServer']>[1]>;
type IoServer = ReturnType<IoAdapter['createIOServer']>;

/** Marks an engine whose sessions any worker can reach. The core checks the app for this mark. */
const CLUSTER_SESSIONS = Symbol.for('nestjs-cluster.sessions');

/**
 * Socket.IO for an app with several workers. Rooms, broadcasts and `fetchSockets()` reach the
 * clients of all workers, and a client's requests may reach any worker. Use it with
 * `app.useWebSocketAdapter(new ClusterIoAdapter(app))`.
 */
export class ClusterIoAdapter extends IoAdapter {
  #channels: HubChannels | undefined;

  /**
   * Nest calls this for each gateway port. `options.adapter` replaces this package's rooms and
   * broadcasts. Without it, `options.connectionStateRecovery` has no effect.
   */
  override createIOServer(port: number, options?: ServerOptions): IoServer {
    const channels = (this.#channels ??= new HubChannels(hubOf()));
    // Not an arrow function, because Socket.IO calls the adapter with `new`.
    function adapter(nsp: Namespace): HubAdapter {
      return new HubAdapter(nsp, channels, channelOf(port, options?.path, nsp.name));
    }
    // Connection state recovery is unsupported: a session ends with its connection.
    const own = { adapter, connectionStateRecovery: undefined };
    const used = options?.adapter === undefined ? { ...options, ...own } : options;
    const server = super.createIOServer(port, used as ServerOptions);
    const engine = server.engine as unknown as Engine & { [CLUSTER_SESSIONS]?: true };
    engine[CLUSTER_SESSIONS] = true;
    const cluster = extension();
    if (cluster !== undefined) shareSessions(engine, cluster);
    return server;
  }
}

/** Hashed, because clients choose the names of dynamic namespaces, which may be very long. */
function channelOf(...parts: readonly unknown[]): string {
  const hash = createHash('sha256').update(JSON.stringify(parts)).digest('base64url');
  return `socket.io ${hash}`;
}
