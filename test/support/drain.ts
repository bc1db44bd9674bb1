import type { ClusterProcess, LogLine } from './cluster-process.js';
import { eventually } from './eventually.js';
import { clusterReport } from './health.js';
import { listenersOf } from './kernel-sockets.js';

/** Far longer than any test waits: where a drain ends, it is not for this. */
export const NEVER_MS = 600_000;

/** Resolves once a worker has begun to handle `path`. Needs the behaviour `streams#announced`. */
export function began(cluster: ClusterProcess, path: string, times = 1): Promise<void> {
  return cluster.until(
    `${times} × ${path}`,
    () => cluster.output.split(new RegExp(`^began \\w+ ${path}$`, 'm')).length > times,
  );
}

/** Resolves once a worker that was told to drain does: it has left the listening socket. */
export async function drains(pid: number): Promise<void> {
  // The kernel may leave one out where others come and go while it lists them: so twice.
  await eventually('a worker that does not listen', () =>
    [listenersOf(pid), listenersOf(pid)].every(({ length }) => length === 0),
  );
}

/** Connections and requests of all workers together, as `/health` tells. Its own are among them. */
export async function openNow(url: string): Promise<{ connections: number; requests: number }> {
  const { workers } = await clusterReport(url);
  const sum = (values: readonly (number | null)[]) =>
    values.reduce<number>((total, value) => total + (value ?? 0), 0);
  return {
    connections: sum(workers.map(({ openConnections }) => openConnections)),
    requests: sum(workers.map(({ requestsInFlight }) => requestsInFlight)),
  };
}

/** The counts if the only connection and request are those by which the test asks for `/health`. */
export const ONLY_THE_ASKER = { connections: 1, requests: 1 };

/** How many of each kind were cut, summed over the workers that stopped. */
export function cutBy(lines: readonly LogLine[]): {
  connections: number;
  requests: number;
  webSockets: number;
} {
  const sum = (key: string) => lines.reduce((total, line) => total + Number(line[key]), 0);
  return {
    connections: sum('destroyedConnections'),
    requests: sum('abortedRequests'),
    webSockets: sum('destroyedWebSockets'),
  };
}

export const NOTHING_CUT = { connections: 0, requests: 0, webSockets: 0 };
