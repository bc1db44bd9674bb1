import { createHash } from 'node:crypto';
import { IoAdapter } from '@nestjs/platform-socket.io';
import { OnceAMinute } from '../../../src/contract/errors/once-a-minute.js';
import { currentLink } from '../../../src/contract/snapshot/current-link.js';
import { HubChannels } from '@nestjs-cluster/shared/internal';
import { hubOf } from '@nestjs-cluster/shared/internal';
import { CLUSTER_SESSIONS, shareSessions } from './cluster-sessions.js';
import { limitConnects } from './connect-limit.js';
import type { Engine } from './engine.interface.js';
import { HubAdapter, type Namespace } from './hub-adapter.js';

/** The types of the Socket.IO version that Nest's adapter uses. */
type ServerOptions = NonNullable<Parameters<IoAdapter['createIOServer']>[1]>;
type IoServer = ReturnType<IoAdapter['createIOServer']>;

/** The maximum length of a namespace's name in the name of its channel. Longer names are hashed. */
const MAX_NAME = 64;

/**
 * Socket.IO for an app with several workers. Rooms, broadcasts and `fetchSockets()` reach the
 * clients of all workers, and each request of a client may reach any worker. Use it as
 * `app.useWebSocketAdapter(new ClusterIoAdapter(app))`.
 */
export class ClusterIoAdapter extends IoAdapter {
  #channels: HubChannels | undefined;

  override createIOServer(port: number, options?: ServerOptions): IoServer {
    const { path = '' } = options ?? {};
    const link = currentLink();
    const hub = hubOf(link);
    const warnings = new OnceAMinute((line) => link?.warn(line));
    const warn = (text: string): void => warnings.say(text, text);
    const channels = (this.#channels ??= new HubChannels(hub, warn));
    // Not an arrow function, because Socket.IO calls it with `new`.
    function adapter(nsp: Namespace): HubAdapter {
      const channel = `socket.io ${JSON.stringify([port, path, shortened(nsp.name)])}`;
      return new HubAdapter(nsp, channels, channel, warn);
    }
    // Sessions of this adapter end with their connection.
    const own = { adapter, connectionStateRecovery: undefined };
    const used = options?.adapter === undefined ? { ...options, ...own } : options;
    const server = super.createIOServer(port, used as ServerOptions);
    const engine = server.engine as unknown as Engine & { [CLUSTER_SESSIONS]?: true };
    engine[CLUSTER_SESSIONS] = true;
    limitConnects(engine, warn);
    if (link !== undefined) shareSessions(engine, link, hub);
    return server;
  }
}

/** Clients choose the names of dynamic namespaces, so two names never share a channel. */
function shortened(name: string): string {
  if (name.length <= MAX_NAME) return `=${name}`;
  return `#${createHash('sha256').update(name).digest('base64url')}`;
}
