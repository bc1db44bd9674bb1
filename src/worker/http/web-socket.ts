import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { UpgradeListeners } from './upgrade-listeners.js';

/** A server's close frame (RFC 6455, 5.5.1) with status 1001, "going away". */
const GOING_AWAY = Buffer.from([0x88, 0x02, 0x03, 0xe9]);

/** On a socket whose owner asks its peer to close, at its own time. */
const CLOSED_BY_OWNER = Symbol.for('nestjs-cluster.closed-by-owner');

type WebSocketSocket = Duplex & { [CLOSED_BY_OWNER]?: true };

/** The caller will ask the peer of this WebSocket to close: the drain leaves it alone. */
export function closedByOwner(socket: WebSocketSocket): void {
  socket[CLOSED_BY_OWNER] = true;
}

/**
 * Asks the peer of a WebSocket to close, whatever library holds it here. A control frame may stand
 * between any two frames, and libraries write theirs whole; the peer's answer reaches the library as
 * if the peer had begun.
 */
export function sayGoingAway(socket: WebSocketSocket): void {
  if (socket.writable && socket[CLOSED_BY_OWNER] === undefined) socket.write(GOING_AWAY);
}

/** Tells `upgraded` of each connection that becomes a WebSocket. */
export function followUpgrades(server: Server, upgraded: (socket: Duplex) => void): void {
  UpgradeListeners.of(server, 'upgrade').add((request: IncomingMessage, socket: Duplex) => {
    if (request.headers.upgrade?.toLowerCase() === 'websocket') upgraded(socket);
  });
}
