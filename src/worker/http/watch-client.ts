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

/** The key on a stream: it has one listener for any number of calls. */
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
