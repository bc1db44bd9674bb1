import type { Engine } from './engine.interface.js';

/** In Socket.IO's protocol, the first character of a packet that asks for a namespace. */
const CONNECT = '0';

/** Maximum number of such packets within `WITHIN_MS`. A client needs one per namespace; a POST has room for 300,000. */
const MAX_CONNECTS = 100;
const WITHIN_MS = 1_000;

/** Disconnects clients that ask for too many namespaces, because each takes a socket in memory. */
export function limitConnects(engine: Pick<Engine, 'on'>, warn: (message: string) => void): void {
  engine.on('connection', (client) => {
    let since = -Infinity;
    let count = 0;
    client.on('packet', ({ type, data }) => {
      if (type !== 'message' || typeof data !== 'string' || data[0] !== CONNECT) return;
      const now = performance.now();
      if (now - since > WITHIN_MS) [since, count] = [now, 0];
      count += 1;
      if (count <= MAX_CONNECTS) return;
      client.close(true);
      warn(
        `a client asked for more than ${MAX_CONNECTS} namespaces of Socket.IO within a second, and was disconnected`,
      );
    });
  });
}
