import { metadataOf } from '../../endpoints/controller-routes.js';
import { type AppView, at, classOf } from '../app-view.js';
import { type Check, listed, type Observation } from '../finding.js';

/** The metadata key that `@WebSocketGateway()` sets. */
const GATEWAY = 'websockets:is_gateway';

/** Adapters of Socket.IO that know only the clients of one process. */
const IN_MEMORY: ReadonlySet<string> = new Set(['Adapter', 'SessionAwareAdapter']);

/** Set by this package's adapter, with which a client may reach any worker. */
const CLUSTER_SESSIONS = Symbol.for('nestjs-cluster.sessions');

const REMEDY =
  'app.useWebSocketAdapter(new ClusterIoAdapter(app)) of @nestjs-cluster/socket.io, which your own adapter may extend';

export const socketIoAdapter: Check = {
  name: 'socket-io-adapter',
  remedy: REMEDY,
  look: (app) =>
    observe(app, 'broadcasts and rooms reach the clients of one worker', (server) =>
      IN_MEMORY.has(classOf(at(namespaceOf(server), 'adapter'))),
    ),
};

export const socketIoPolling: Check = {
  name: 'socket-io-polling',
  remedy: `${REMEDY}, or leave polling out, @WebSocketGateway({ transports: ['websocket'] }), and in the clients too`,
  look: (app) =>
    observe(
      app,
      'requests of one long-polling client reach several workers, which answer 400 (Session ID unknown)',
      (server) => {
        const engine = engineOf(server);
        if (at(engine, CLUSTER_SESSIONS) === true) return false;
        const transports = at(engine, 'opts', 'transports');
        return Array.isArray(transports) && transports.includes('polling');
      },
    ),
};

function observe(app: AppView, problem: string, isSo: (server: object) => boolean): Observation[] {
  if (!app.socketServers.some((server) => isSocketIo(server) && isSo(server))) return [];
  const gateways = app.providers
    .filter(({ type }) => type !== undefined && metadataOf(GATEWAY, type) === true)
    .map(({ type, module }) => `${type!.name} (${module})`);
  return [{ where: listed(gateways), problem }];
}

/** Whether this is a Socket.IO server or one of its namespaces. Nest may hold either. */
function isSocketIo(server: unknown): server is object {
  return typeof at(server, 'of') === 'function' || at(server, 'server', 'of') !== undefined;
}

function namespaceOf(server: object): unknown {
  return (server as { of?(name: string): unknown }).of?.('/') ?? server;
}

function engineOf(server: object): unknown {
  return at(server, 'engine') ?? at(server, 'server', 'engine');
}
