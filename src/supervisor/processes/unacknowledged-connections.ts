import cluster, { type Worker } from 'node:cluster';

/** The message of node:cluster with a connection, and its answer; the same on Node 20 to 26. */
interface ClusterMessage {
  readonly cmd?: unknown;
  readonly act?: unknown;
  readonly seq?: unknown;
  readonly ack?: unknown;
}

/**
 * With round-robin the primary keeps each connection that it hands to a worker
 * until the worker acknowledges it. If the worker dies first, node:cluster
 * forgets it: its client hangs for ever, and the primary loses a descriptor
 * (https://github.com/nodejs/node/issues/21746). This remembers what a worker
 * has yet to acknowledge.
 *
 * @returns gives that to other workers, or closes it where there are none. To be
 *   called once the worker has exited and everything it had sent has been read.
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
    // Without this, Node would give the dead worker the next connection.
    process.emit('disconnect');
    // With the last worker the listener has gone: what is given back to that is never looked at again.
    const answer = { cmd: 'NODE_CLUSTER', accepted: !isAnyoneListening() };
    for (const ack of unacknowledged) {
      process.emit('internalMessage' as never, { ...answer, ack } as never);
    }
  };
}

/** Node's own state of a worker; the same on Node 20 to 26, and not in its types. */
type WorkerWithState = Worker & { readonly state?: string };

function isAnyoneListening(): boolean {
  return Object.values(cluster.workers ?? {}).some(
    (worker: WorkerWithState | undefined) => worker?.state === 'listening',
  );
}
