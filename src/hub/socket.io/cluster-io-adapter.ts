import type { EventEmitter } from 'node:events';
import { IoAdapter } from '@nestjs/platform-socket.io';
import { integer, option, optionGroup, validate } from '../../contract/options/check/validate.js';
import { OnceAMinute } from '../../contract/errors/once-a-minute.js';
import { currentLink } from '../../contract/snapshot/current-link.js';
import { HubChannels } from '../client/hub-channels.js';
import { hubOf } from '../client/hub-of-process.js';
import { CLUSTER_SESSIONS, shareSessions } from './cluster-sessions.js';
import { limitConnects } from './connect-limit.js';
import type { Engine } from './engine.interface.js';
import { HubAdapter, type Namespace } from './hub-adapter.js';
import { PrivateIds } from './private-ids.js';
import { SessionStore, tagsOf } from './session-store.js';

/** Options of {@link ClusterIoAdapter}. */
export interface ClusterIoAdapterOptions {
  /**
   * With `connectionStateRecovery`, the maximum size of kept packets in the whole cluster. The
   * stored sessions have the same maximum. Beyond it, the oldest are dropped. Default: 16 MiB.
   */
  readonly maxRecoveryBytes?: number | undefined;
}

/** The types of the Socket.IO version that Nest's adapter uses. */
type ServerOptions = NonNullable<Parameters<IoAdapter['createIOServer']>[1]>;
type IoServer = ReturnType<IoAdapter['createIOServer']>;

const optionsSchema = optionGroup({
  maxRecoveryBytes: option(integer(0, Number.MAX_SAFE_INTEGER), 16 * 1024 * 1024),
});

/**
 * Socket.IO for an app with several workers. Rooms, broadcasts and `fetchSockets()` reach the
 * clients of all workers, and each request of a client may reach any worker. Use it as
 * `app.useWebSocketAdapter(new ClusterIoAdapter(app))`.
 */
export class ClusterIoAdapter extends IoAdapter {
  readonly #maxBytes: number;
  #channels: HubChannels | undefined;

  /** @param app a Nest application, or an HTTP server. @throws ClusterConfigurationError */
  constructor(app?: object, options?: ClusterIoAdapterOptions) {
    super(app);
    this.#maxBytes = validate(optionsSchema, options, 'ClusterIoAdapter').maxRecoveryBytes;
  }

  override createIOServer(port: number, options?: ServerOptions): IoServer {
    const { path = '' } = options ?? {};
    const link = currentLink();
    const hub = hubOf(link);
    const warnings = new OnceAMinute((line) => link?.warn(line));
    const warn = (text: string): void => warnings.say(text, text);
    const channels = (this.#channels ??= new HubChannels(hub, warn));
    const ids = new PrivateIds(link?.findHub());
    const sessions = new SessionStore(hub, channels, ids, this.#maxBytes, warn);
    // Not an arrow function, because Socket.IO calls it with `new`.
    function adapter(nsp: Namespace): HubAdapter {
      const [name] = tagsOf([nsp.name]); // short even if a client has chosen a long name
      const channel = `socket.io ${JSON.stringify([port, path, name])}`;
      return new HubAdapter(nsp, channels, sessions, channel, warn);
    }
    const server = super.createIOServer(port, { adapter, ...options } as ServerOptions);
    const engine = server.engine as unknown as Engine & { [CLUSTER_SESSIONS]?: true };
    engine[CLUSTER_SESSIONS] = true;
    limitConnects(engine, warn);
    const { httpServer } = server as unknown as { httpServer: EventEmitter };
    if (link !== undefined) shareSessions(engine, httpServer, link, hub);
    return server;
  }
}
