import type { ServerResponse } from 'node:http';
import { CONNECTION, type TrackedSocket } from './connection.js';

/**
 * Calls `gone` once if the client disconnects before its response is complete, or immediately if it
 * has disconnected already. With HTTP/1.1, watches the connection and not the response: if several
 * responses are pipelined, Node emits `close` only on the first.
 *
 * @returns a function that ends the watch.
 */
export function watchClient(response: ServerResponse, gone: () => void): () => void {
  if (response.writableFinished) return () => {};
  const leave = (): void => {
    if (!response.writableFinished) gone();
  };
  // Over HTTP/2 each response has its own stream. Once that is closed, `stream` is undefined.
  if ('stream' in response) {
    const { stream } = response as { stream?: { destroyed: boolean } };
    if (stream === undefined || stream.destroyed) {
      gone();
      return () => {};
    }
    return add(leave, watchersOf(response));
  }
  const socket: TrackedSocket = response.req.socket;
  if (socket.destroyed) {
    gone();
    return () => {};
  }
  const connection = socket[CONNECTION];
  if (connection === undefined) return () => {};
  return add(leave, (connection.watchers ??= new Set()));
}

/** The key of the watchers on an HTTP/2 response. The response has one listener for all watchers. */
const WATCHERS = Symbol('nestjs-cluster.watchers');

function watchersOf(response: ServerResponse & { [WATCHERS]?: Set<() => void> }): Set<() => void> {
  if (response[WATCHERS] === undefined) {
    const watchers = (response[WATCHERS] = new Set());
    response.once('close', () => {
      for (const leave of watchers) leave();
    });
  }
  return response[WATCHERS];
}

function add(leave: () => void, watchers: Set<() => void>): () => void {
  watchers.add(leave);
  return () => watchers.delete(leave);
}
