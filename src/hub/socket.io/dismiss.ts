import type { EngineClient } from './engine.interface.js';

/** A client who polls asks again at once. One that has not for this long is gone. */
const LOST_MS = 2_000;

/** Has a client connect again. Engine.IO waits for its next poll, for 30 s or without end: one that is gone has none. */
export function dismiss(client: EngineClient, lostMs = LOST_MS): void {
  client.transport.closeTimeout = lostMs;
  const timer = setTimeout(() => {
    const { name, writable } = client.transport;
    if (name === 'polling' && !writable) client.close(true);
  }, lostMs);
  timer.unref();
  client.close();
}
