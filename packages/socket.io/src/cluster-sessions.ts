import { setTimeout as delay } from 'node:timers/promises';
import { SessionAffinity } from './affinity/session-affinity.js';
import type { HubClient } from '@nestjs-cluster/shared/internal';
import type { ClusterLink } from '../../../src/contract/snapshot/index.js';
import { closedByOwner } from 'nestjs-cluster/extension';
import type { Engine, EngineClient, EngineRequest } from './engine.interface.js';

/** Marks an engine whose sessions any worker can reach. The doctor looks for this mark. */
export const CLUSTER_SESSIONS = Symbol.for('nestjs-cluster.sessions');

/** Maximum time that a new session waits until other workers can reach this worker, in ms. */
const MAX_WAIT_MS = 3_000;

/** A client that polls is lost after this long without a poll. Usually it polls again at once. */
const LOST_MS = 2_000;

/** Lets each request of a client reach any worker: the id of a session names its owner. */
export function shareSessions(
  engine: Engine,
  link: Pick<ClusterLink, 'identity' | 'warn' | 'connectionLimit' | 'findHub' | 'onDrain'>,
  hub: Pick<HubClient, 'ready'>,
): void {
  const find = link.findHub();
  if (find === undefined) return;
  const sidOf = (request: EngineRequest): unknown => {
    engine.prepare(request);
    return request._query!['sid'];
  };
  const sessions = new SessionAffinity(link, find, {
    request: engine.handleRequest.bind(engine),
    upgrade: engine.handleUpgrade.bind(engine),
    release: (request) => {
      const { transport } = engine.clients[String(sidOf(request))] ?? {};
      if (transport?.name === 'polling' && transport.writable) transport.send([{ type: 'noop' }]);
    },
  });
  const opening = sessions.open();
  const late = delay(MAX_WAIT_MS, undefined, { ref: false });
  const opened = hub
    .ready(MAX_WAIT_MS)
    .then((isOpen) => (isOpen ? Promise.race([opening, late]) : undefined));
  engine.generateId = async () => {
    await opened;
    return sessions.newSessionId();
  };
  engine.handleRequest = (request, response) => {
    sessions.request(sidOf(request), request, response);
  };
  engine.handleUpgrade = (request, socket, head) => {
    closedByOwner(socket);
    sessions.upgrade(sidOf(request), request, socket, head);
  };
  link.onDrain(
    () => [...sessions.relayed, ...Object.values(engine.clients)],
    (each) => (typeof each === 'function' ? each() : askToReconnect(each)),
  );
}

/**
 * Closes a client so that it reconnects. Engine.IO may wait for ever for a poll of a lost client.
 */
export function askToReconnect(client: EngineClient, lostMs = LOST_MS): void {
  client.transport.closeTimeout = lostMs;
  setTimeout(() => {
    const { name, writable } = client.transport;
    if (name === 'polling' && !writable) client.close(true);
  }, lostMs).unref();
  client.close();
}
