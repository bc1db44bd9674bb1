import { setTimeout as delay } from 'node:timers/promises';
import { removeSocket } from '../../control/stale-sockets.js';
import type { ClusterLink, HubAddress } from '../../snapshot/index.js';
import { ownFarewell } from '../../worker/web-socket.js';
import type { HubClient } from '../../hub/client/hub-client.js';
import type { Engine, EngineRequest } from './engine.interface.js';
import { dismiss, farewell } from './farewell.js';
import { newOwner, newSessionId, ownerOf } from './session-id.js';
import { ownSessions } from './session-owner.js';
import { SessionRelay } from './session-relay.js';

/** The doctor looks for it. */
export const CLUSTER_SESSIONS = Symbol.for('nestjs-cluster.sessions');

/** A client is not let in before others reach its session, and it them, but for this long at most. */
const MAX_WAIT_MS = 3_000;
const RETRY_MS = 1_000;

/** Lets requests of a client reach any worker: each session has an owner, which its id tells. */
export function shareSessions(
  engine: Engine,
  link: ClusterLink,
  hub: Pick<HubClient, 'ready'>,
): void {
  const find = link.findHub();
  if (find === undefined) return;
  const owner = newOwner(link.identity.slot);
  const relay = new SessionRelay();
  const handleRequest = engine.handleRequest.bind(engine);
  const handleUpgrade = engine.handleUpgrade.bind(engine);
  let address: HubAddress | undefined;
  let warned: string | undefined;
  const open = async (): Promise<void> => {
    try {
      const found = await find();
      const own = pathOf(found, owner);
      await ownSessions(engine, { handleRequest, handleUpgrade }, own);
      process.once('exit', () => removeSocket(own));
      address = found;
    } catch (error) {
      const { message } = error as Error;
      // It tries each second: a reason that goes on is no news.
      if (message !== warned) link.warn(`requests of Socket.IO cannot be passed on: ${message}`);
      warned = message;
      await delay(RETRY_MS, undefined, { ref: false });
      await open();
    }
  };
  const opened = Promise.race([
    Promise.all([open(), hub.ready(MAX_WAIT_MS)]),
    delay(MAX_WAIT_MS, undefined, { ref: false }),
  ]);
  /** The private socket of the other worker that owns the session, where it is one. */
  const elsewhere = (request: EngineRequest): string | undefined => {
    engine.prepare(request);
    const other = ownerOf(request._query!['sid']);
    const isOther = address !== undefined && other !== undefined && other !== owner;
    return isOther ? pathOf(address!, other) : undefined;
  };
  engine.generateId = async () => {
    await opened;
    return newSessionId(owner);
  };
  engine.handleRequest = (request, response) => {
    const path = elsewhere(request);
    const here = (): void => handleRequest(request, response);
    if (path === undefined) here();
    else relay.request(path, request, response, here);
  };
  engine.handleUpgrade = (request, socket, head) => {
    ownFarewell(socket);
    const path = elsewhere(request);
    const here = (): void => handleUpgrade(request, socket, head);
    if (path === undefined) here();
    else relay.upgrade(path, request, socket, head, here);
  };
  link.onDrain((withinMs) =>
    farewell(
      () => [...relay.open, ...Object.values(engine.clients)],
      (each) => (typeof each === 'function' ? each() : dismiss(each)),
      withinMs,
    ),
  );
}

/** In the hub's own directory, which nobody else can enter. Of a client's session id come digits alone. */
function pathOf({ path }: HubAddress, owner: string): string {
  return `${path.replace(/\.hub$/, '')}.${owner}.hub`;
}
