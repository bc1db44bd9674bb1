import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';

/** A server's close frame (RFC 6455, 5.5.1) with status 1001, "going away". */
const GOING_AWAY = Buffer.from([0x88, 0x02, 0x03, 0xe9]);

/**
 * Asks the peer of a WebSocket to close, whatever library holds it here. A
 * control frame may stand between any two frames, and libraries write theirs
 * whole; the peer's answer reaches the library as if the peer had begun.
 */
export function sayGoingAway(socket: Duplex): void {
  if (socket.writable) socket.write(GOING_AWAY);
}

/**
 * Tells `upgraded` of each connection that becomes a WebSocket. It listens only
 * while the app does: a listener of ours alone would make the server take
 * upgrades that nobody handles.
 */
export function followUpgrades(server: Server, upgraded: (socket: Duplex) => void): void {
  const onUpgrade = (request: IncomingMessage, socket: Duplex): void => {
    if (request.headers.upgrade?.toLowerCase() === 'websocket') upgraded(socket);
  };
  let listening = server.listenerCount('upgrade') > 0;
  if (listening) server.on('upgrade', onUpgrade);
  server.on('newListener', (event: string | symbol) => {
    if (event !== 'upgrade' || listening) return;
    listening = true; // before: this adds a listener, and comes here again
    server.on('upgrade', onUpgrade);
  });
  server.on('removeListener', (event: string | symbol) => {
    if (event !== 'upgrade' || !listening || server.listenerCount('upgrade') > 1) return;
    listening = false;
    server.off('upgrade', onUpgrade);
  });
}
