import type { ClusterProcess } from './cluster-process.js';
import type { RawClient } from './raw-client.js';

/** Heartbeats as short as are still judged by the same rules, on a machine that does nothing else. */
export const FAST = { intervalMs: 200, timeoutMs: 1_000 };

/** Longer than a busy machine holds up a worker that is well. */
export const SURE = { intervalMs: 200, timeoutMs: 3_500 };

/** What the line of a worker that hung says of its event loop. */
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
