import cluster, { type Worker } from 'node:cluster';

/** node:cluster's message with a connection, and the worker's answer. Both are the same on Node 20 to 26. */
interface ClusterMessage {
  readonly cmd?: unknown;
  readonly act?: unknown;
  readonly seq?: unknown;
  readonly ack?: unknown;
}

/**
 * Remembers the connections that a worker has not acknowledged yet. With round-robin, the primary
 * keeps a connection until the worker acknowledges it. If the worker dies first, node:cluster
 * forgets the connection: its client hangs for ever, and the primary loses a descriptor
 * (https://github.com/nodejs/node/issues/21746).
 *
 * @returns a function that gives these connections to other workers, or closes them if no other
 *   worker listens. Call it once the worker has exited and all its messages have been read.
 */
export function followConnections(worker: Worker): () => void {
  const { process } = worker;
  const unacknowledged = new Set<number>();
  const send = process.send.bind(process) as (...args: unknown[]) => boolean;
  process.send = (...args: unknown[]) => {
    const { cmd, act, seq } = (args[0] ?? {}) as ClusterMessage;
    if (cmd === 'NODE_CLUSTER' && act === 'newconn') unacknowledged.add(seq as number);
    return send(...args);
  };
  process.on('internalMessage', ({ cmd, ack }: ClusterMessage) => {
    if (cmd === 'NODE_CLUSTER') unacknowledged.delete(ack as number);
  });
  return () => {
    // Without this event, Node would give the dead worker the next connection.
    process.emit('disconnect');
    // `false` makes node:cluster give the connection to another worker, `true` makes it close the
    // connection. If no worker listens, node:cluster would forget a connection that is given back.
    const answer = { cmd: 'NODE_CLUSTER', accepted: !isAnyoneListening() };
    for (const ack of unacknowledged) {
      process.emit('internalMessage' as never, { ...answer, ack } as never);
    }
  };
}

/** `state` is internal to Node and missing in its types. It is the same on Node 20 to 26. */
type WorkerWithState = Worker & { readonly state?: string };

function isAnyoneListening(): boolean {
  return Object.values(cluster.workers ?? {}).some(
    (worker: WorkerWithState | undefined) => worker?.state === 'listening',
  );
}
