import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { UpgradeListeners } from './upgrade-listeners.js';

/** A server's close frame (RFC 6455, 5.5.1) with status 1001, "going away". */
const GOING_AWAY = Buffer.from([0x88, 0x02, 0x03, 0xe9]);

/** `extension` marks a socket whose owner chooses when to ask the peer to close. */
const CLOSED_BY_OWNER = Symbol.for('nestjs-cluster.closed-by-owner');

/**
 * Asks the peer of a WebSocket to close, by writing a close frame to the socket. Works with any
 * WebSocket library: a control frame may stand between any two frames, and libraries write each
 * frame in one piece. When the peer answers, the library takes the answer for a close by the peer.
 */
export function sayGoingAway(socket: Duplex): void {
  if (socket.writable && !(CLOSED_BY_OWNER in socket)) socket.write(GOING_AWAY);
}

/** Calls `upgraded` for each connection that is upgraded to a WebSocket. */
export function followUpgrades(server: Server, upgraded: (socket: Duplex) => void): void {
  UpgradeListeners.of(server, 'upgrade').add((request: IncomingMessage, socket: Duplex) => {
    if (request.headers.upgrade?.toLowerCase() === 'websocket') upgraded(socket);
  });
}
