import type { ServerResponse } from 'node:http';
import { CONNECTION, type TrackedSocket } from './connection.js';

/**
 * Calls `gone` once if the client goes away before its answer is complete; at
 * once if it is gone. Not by a listener on each response: of several that are
 * pipelined Node tells the first alone.
 *
 * @returns what ends the watch.
 */
export function watchClient(response: ServerResponse, gone: () => void): () => void {
  if (response.writableFinished) return () => {};
  const leave = (): void => {
    if (!response.writableFinished) gone();
  };
  // One stream of an HTTP/2 session; there is none any more once that is closed.
  if ('stream' in response) {
    const { stream } = response as { stream?: { destroyed: boolean } };
    if (stream === undefined || stream.destroyed) {
      gone();
      return () => {};
    }
    response.once('close', leave);
    return () => response.off('close', leave);
  }
  const socket: TrackedSocket = response.req.socket;
  if (socket.destroyed) {
    gone();
    return () => {};
  }
  const connection = socket[CONNECTION];
  if (connection === undefined) return () => {};
  const watchers = (connection.watchers ??= new Set());
  watchers.add(leave);
  return () => watchers.delete(leave);
}
