import { setTimeout as delay } from 'node:timers/promises';
import { hubOf } from '@nestjs-cluster/shared/internal';
import { closedByOwner, type Extension } from 'nestjs-cluster/extension';
import type { Engine, EngineClient, EngineRequest } from './engine.interface.js';
import { Relay } from './relay.js';
import { newOwner, newSessionId, ownerOf } from './session-id.js';
import { listenForRelays, type OwnSessions } from './session-socket.js';

/** Maximum time that a new session waits until other workers can reach this worker, in ms. */
const MAX_WAIT_MS = 3_000;

const RETRY_MS = 1_000;

/** A client that polls is lost after this long without a poll. Usually it polls again at once. */
const LOST_MS = 2_000;

/**
 * Lets each request of a client reach any worker, although a session stays in the memory of one
 * worker. The id of a session names that worker, its owner. Other workers relay requests to it.
 */
export function shareSessions(
  engine: Engine,
  cluster: Pick<Extension, 'identity' | 'thread' | 'warn' | 'onDrain'>,
): void {
  const find = cluster.thread('@nestjs-cluster/shared');
  if (find === undefined) return;
  const relay = new Relay();
  const owner = newOwner(cluster.identity.slot);
  /** The path of each owner's socket; `undefined` until this worker listens. */
  let pathOf: ((owner: string) => string) | undefined;

  const sidOf = (request: EngineRequest): unknown => {
    engine.prepare(request);
    return request._query!['sid'];
  };
  const otherPath = (request: EngineRequest): string | undefined => {
    const other = ownerOf(sidOf(request));
    return other === undefined || other === owner ? undefined : pathOf?.(other);
  };
  const own: OwnSessions = {
    handleRequest: engine.handleRequest.bind(engine),
    handleUpgrade: engine.handleUpgrade.bind(engine),
    release: (request) => {
      const { transport } = engine.clients[String(sidOf(request))] ?? {};
      if (transport?.name === 'polling' && transport.writable) transport.send([{ type: 'noop' }]);
    },
  };

  const open = async (): Promise<void> => {
    try {
      const { path } = await find();
      // The primary removes `<its pid>.<8 hexadecimal digits>.….thread` of a primary that was killed.
      const start = path.replace(/\.[\da-f]{8}\.thread$/, '');
      const paths = (each: string): string => `${start}.${each}.thread`;
      await listenForRelays(paths(owner), own, () => void open());
      pathOf = paths;
    } catch (error) {
      const { message } = error as Error;
      cluster.warn(`requests cannot be relayed to the worker of their session: ${message}`);
      await delay(RETRY_MS, undefined, { ref: false });
      await open();
    }
  };
  const late = delay(MAX_WAIT_MS, undefined, { ref: false });
  const opened = Promise.race([Promise.all([open(), hubOf().ready(MAX_WAIT_MS)]), late]);
  engine.generateId = async () => {
    await opened;
    return newSessionId(owner);
  };
  engine.handleRequest = (request, response) => {
    const path = otherPath(request);
    const here = (): void => own.handleRequest(request, response);
    if (path === undefined) here();
    else relay.request(path, request, response, here);
  };
  engine.handleUpgrade = (request, socket, head) => {
    closedByOwner(socket);
    const path = otherPath(request);
    const here = (): void => own.handleUpgrade(request, socket, head);
    if (path === undefined) here();
    else relay.upgrade(path, request, socket, head, here);
  };
  cluster.onDrain(
    () => [...relay.open, ...Object.values(engine.clients)],
    (each) => (typeof each === 'function' ? each() : askToReconnect(each)),
  );
}

/** Closes a client so that it reconnects. Engine.IO alone may wait for ever for a poll of a lost client. */
export function askToReconnect(client: EngineClient, lostMs = LOST_MS): void {
  client.transport.closeTimeout = lostMs;
  client.close();
  setTimeout(() => {
    if (client.transport.name === 'polling') client.close(true);
  }, lostMs).unref();
}
