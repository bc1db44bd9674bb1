import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';

/** Events of a server. If an event has a listener, its requests do not reach the app's handler. */
type TakingEvent = 'upgrade' | 'connect';

/**
 * Calls `listener` before the app's listeners for the event. Adds it only when the app adds a
 * listener: otherwise ours would keep the requests from the app's handler, and no one would answer.
 */
export function listenBeforeApp(
  server: Server,
  event: TakingEvent,
  listener: (request: IncomingMessage, socket: Duplex) => void,
): void {
  if (server.listenerCount(event) > 0) return void server.prependListener(event, listener);
  const onNewListener = (added: string | symbol): void => {
    if (added !== event) return;
    server.off('newListener', onNewListener);
    server.prependListener(event, listener);
  };
  server.on('newListener', onNewListener);
}
