import type { EventEmitter } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { SessionAffinity } from '../affinity/session-affinity.js';
import type { HubClient } from '../client/hub-client.js';
import type { ClusterLink } from '../../contract/snapshot/index.js';
import { ownFarewell } from '../../worker/http/web-socket.js';
import { dismiss } from './dismiss.js';
import type { Engine, EngineRequest } from './engine.interface.js';

/** The doctor looks for it. */
export const CLUSTER_SESSIONS = Symbol.for('nestjs-cluster.sessions');

/** A client is not let in before others reach its session, and it them, but for this long at most. */
const MAX_WAIT_MS = 3_000;

/**
 * Lets requests of a client reach any worker: each session has an owner, which its id tells.
 *
 * @param server that the engine is attached to.
 */
export function shareSessions(
  engine: Engine,
  server: EventEmitter,
  link: Pick<ClusterLink, 'identity' | 'warn' | 'passage' | 'findHub' | 'onDrain'>,
  hub: Pick<HubClient, 'ready'>,
): void {
  const find = link.findHub();
  if (find === undefined) return;
  const sidOf = (request: EngineRequest): unknown => {
    engine.prepare(request);
    return request._query!['sid'];
  };
  const sessions = new SessionAffinity(link, find, server, {
    request: engine.handleRequest.bind(engine),
    upgrade: engine.handleUpgrade.bind(engine),
    release: (request) => {
      const { transport } = engine.clients[String(sidOf(request))] ?? {};
      if (transport?.name === 'polling' && transport.writable) transport.send([{ type: 'noop' }]);
    },
  });
  const opened = Promise.race([
    Promise.all([sessions.open(), hub.ready(MAX_WAIT_MS)]),
    delay(MAX_WAIT_MS, undefined, { ref: false }),
  ]);
  engine.generateId = async () => {
    await opened;
    return sessions.newSessionId();
  };
  engine.handleRequest = (request, response) => {
    sessions.request(sidOf(request), request, response);
  };
  engine.handleUpgrade = (request, socket, head) => {
    ownFarewell(socket);
    sessions.upgrade(sidOf(request), request, socket, head);
  };
  link.onDrain(
    () => [...sessions.relayed, ...Object.values(engine.clients)],
    (each) => (typeof each === 'function' ? each() : dismiss(each)),
  );
}
