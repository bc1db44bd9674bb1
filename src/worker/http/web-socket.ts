import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { UpgradeListeners } from './upgrade-listeners.js';

/** A server's close frame (RFC 6455, 5.5.1) with status 1001, "going away". */
const GOING_AWAY = Buffer.from([0x88, 0x02, 0x03, 0xe9]);

/** On a socket whose owner asks its peer to close, at its own time. */
const OWN_FAREWELL = Symbol.for('nestjs-cluster.own-farewell');

type FarewellSocket = Duplex & { [OWN_FAREWELL]?: true };

/** Leaves it to the caller to have the peer of a WebSocket go. */
export function ownFarewell(socket: FarewellSocket): void {
  socket[OWN_FAREWELL] = true;
}

/**
 * Asks the peer of a WebSocket to close, whatever library holds it here. A
 * control frame may stand between any two frames, and libraries write theirs
 * whole; the peer's answer reaches the library as if the peer had begun.
 */
export function sayGoingAway(socket: FarewellSocket): void {
  if (socket.writable && socket[OWN_FAREWELL] === undefined) socket.write(GOING_AWAY);
}

/** Tells `upgraded` of each connection that becomes a WebSocket. */
export function followUpgrades(server: Server, upgraded: (socket: Duplex) => void): void {
  const onUpgrade = (request: IncomingMessage, socket: Duplex): void => {
    if (request.headers.upgrade?.toLowerCase() === 'websocket') upgraded(socket);
  };
  UpgradeListeners.of(server, 'upgrade').add(onUpgrade, 'anywhere');
}
