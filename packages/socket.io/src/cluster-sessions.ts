import { setTimeout as delay } from 'node:timers/promises';
import { hubOf } from '@nestjs-cluster/shared/internal';
import { closedByOwner, type Extension } from 'nestjs-cluster/extension';
import type { Engine, EngineClient, EngineRequest } from './engine.interface.js';
import { Relay } from './relay.js';
import { type OwnSessions, SessionSockets } from './session-sockets.js';

/** Maximum time that a new session waits until other workers can reach this worker, in ms. */
const MAX_WAIT_MS = 3_000;

/** A polling client is lost after this time without a poll, in ms. Usually it polls again immediately. */
const LOST_MS = 2_000;

/**
 * Lets a client's requests reach any worker, although its session stays in the memory of one
 * worker. The session id names that worker, its owner. Other workers relay requests to it.
 */
export function shareSessions(
  engine: Engine,
  cluster: Pick<Extension, 'identity' | 'thread' | 'warn' | 'onDrain'>,
): void {
  const find = cluster.thread('@nestjs-cluster/shared');
  if (find === undefined) return;
  const sidOf = (request: EngineRequest): unknown => {
    engine.prepare(request);
    return request._query!['sid'];
  };
  const own: OwnSessions = {
    handleRequest: engine.handleRequest.bind(engine),
    handleUpgrade: engine.handleUpgrade.bind(engine),
    release: (request) => {
      const { transport } = engine.clients[String(sidOf(request))] ?? {};
      if (transport?.name === 'polling' && transport.writable) transport.send([{ type: 'noop' }]);
    },
  };
  const sockets = new SessionSockets(cluster, find, own);
  const relay = new Relay();
  const late = delay(MAX_WAIT_MS, undefined, { ref: false });
  const opened = Promise.race([Promise.all([sockets.open(), hubOf().ready(MAX_WAIT_MS)]), late]);
  engine.generateId = async () => {
    await opened;
    return sockets.newSessionId();
  };
  engine.handleRequest = (request, response) => {
    const path = sockets.pathOf(sidOf(request));
    const here = (): void => own.handleRequest(request, response);
    if (path === undefined) here();
    else relay.request(path, request, response, here);
  };
  engine.handleUpgrade = (request, socket, head) => {
    closedByOwner(socket);
    const path = sockets.pathOf(sidOf(request));
    const here = (): void => own.handleUpgrade(request, socket, head);
    if (path === undefined) here();
    else relay.upgrade(path, request, socket, head, here);
  };
  cluster.onDrain(
    () => [...relay.open, ...Object.values(engine.clients)],
    (each) => (typeof each === 'function' ? each() : askToReconnect(each)),
  );
}

/** Closes a client so that it reconnects. Engine.IO alone may wait forever for the poll of a lost client. */
export function askToReconnect(client: EngineClient, lostMs = LOST_MS): void {
  client.transport.closeTimeout = lostMs;
  client.close();
  setTimeout(() => {
    if (client.transport.name === 'polling') client.close(true);
  }, lostMs).unref();
}
