import { at, type Check, metadataOf, nameOf } from '../finding.js';

/** `this.server.clients` in the text of a class. The set of a ws server has the clients of one process. */
const CLIENTS = /\.\s*clients\b/;

export const webSocketBroadcast: Check = {
  name: 'web-socket-broadcast',
  remedy:
    "publish it by ClusterEvents of '@nestjs-cluster/shared/events', and send to the clients of each worker in an @OnEvent() handler",
  look: ({ providers, socketServers }) =>
    // A server of ws has a set of clients; one of Socket.IO has namespaces.
    socketServers.some((server) => at(server, 'clients') instanceof Set)
      ? providers
          .filter(({ type }) => type && metadataOf('websockets:is_gateway', type) === true)
          .filter(({ type }) => CLIENTS.test(String(type)))
          .map((gateway) => ({
            where: nameOf(gateway),
            problem: 'a broadcast over server.clients reaches the WebSockets of one worker',
          }))
      : [],
};
