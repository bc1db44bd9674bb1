import type { ClusterProcess } from './cluster-process.js';
import type { RawClient } from './raw-client.js';

/** A value of `hangTimeoutMs`: short, and longer than the delays of a healthy worker on a busy machine. */
export const HANG_TIMEOUT_MS = 3_500;

/** The field of a `worker-died` line that describes the blocked event loop of a hung worker. */
export interface Block {
  readonly forMs: number;
  readonly requests: readonly { method: string; path: string; forMs: number }[];
  readonly frames: readonly string[];
}

/** Sends a request whose handler blocks the worker; resolves with that worker's pid. */
export async function hang(
  cluster: ClusterProcess,
  client: RawClient,
  kind: string,
): Promise<number> {
  const pattern = new RegExp(`^hanging ${kind} (\\d+)$`, 'm');
  client.get(`/hang/${kind}?token=secret`);
  await cluster.until(`a worker that hangs by ${kind}`, () => pattern.test(cluster.output));
  return Number(pattern.exec(cluster.output)![1]);
}
