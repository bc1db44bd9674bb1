import { metadataOf } from '../../../observe/endpoints/controller-routes.js';
import { at } from '../../../observe/findings/app-view.js';
import type { Check } from '../../../observe/findings/finding.js';

/** The metadata key that `@WebSocketGateway()` sets. */
const GATEWAY = 'websockets:is_gateway';

/** `this.server.clients` in the text of a class. The set of a ws server has the clients of one process. */
const CLIENTS = /\.\s*clients\b/;

export const webSocketBroadcasts: Check = {
  name: 'web-socket-broadcast',
  remedy:
    'publish it with ClusterEvents of @nestjs-cluster/shared/events, and send to the clients of each worker in an @OnEvent() handler; or, beyond one machine, by a broker',
  look: (app) =>
    app.socketServers.some(isOfWs)
      ? app.providers
          .filter(({ type }) => type !== undefined && metadataOf(GATEWAY, type) === true)
          .filter(({ type }) => CLIENTS.test(String(type)))
          .map(({ type, module }) => ({
            where: `${type!.name} (${module})`,
            problem: 'a broadcast over server.clients reaches the WebSockets of one worker',
          }))
      : [],
};

/** A server of ws has a set of clients; one of Socket.IO has namespaces. */
function isOfWs(server: unknown): boolean {
  return at(server, 'clients') instanceof Set;
}
