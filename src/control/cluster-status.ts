import { readFileSync } from 'node:fs';
import { describeCluster, judgeCluster } from '../observe/exposition/cluster-report.js';
import type { ResolvedClusterOptions } from '../contract/options/resolve.js';
import { ownFile } from '../contract/process/own-file.js';
import type { ClusterSnapshot, FailureCause } from '../contract/snapshot/types.js';

/** The answer to `GET /v1/status`. */
export type ClusterStatus = ReturnType<ReturnType<typeof statusOf>>;

export type ClusterReport = ReturnType<typeof clusterReport>;

/** The cluster as `/health` shows it. */
export function clusterReport(snapshot: ClusterSnapshot) {
  const { status, reason } = judgeCluster(snapshot, snapshot.minReady);
  return {
    status,
    ...describeCluster({ snapshot, ageMs: 0 }),
    ...(reason !== undefined && { reason }),
    restartsByCause: restartsByCause(snapshot),
  };
}

/** Restarts in all slots, including dismissed slots. A slot with two processes counts once. */
function restartsByCause({ workers, dismissed }: ClusterSnapshot) {
  const slots = new Map([...dismissed, ...workers].map((each) => [each.slot, each]));
  const sums: Partial<Record<FailureCause, number>> = {};
  for (const { restartsByCause: restarts } of slots.values()) {
    for (const [cause, count] of Object.entries(restarts) as [FailureCause, number][]) {
      sums[cause] = (sums[cause] ?? 0) + count;
    }
  }
  return sums;
}

/** Returns a function that creates the status. Fields that never change are created only once. */
export function statusOf(
  name: string,
  { address, admin }: ResolvedClusterOptions,
  snapshotNow: () => ClusterSnapshot,
) {
  const fixed = {
    name,
    pid: process.pid,
    /** The version of nestjs-cluster; `null` in a bundle. */
    version: ownVersion(),
    node: process.versions.node,
    /** ISO 8601, UTC. */
    startedAt: new Date().toISOString(),
    // Only these options, because others may be secrets.
    options: {
      ...(address.kind === 'tcp'
        ? { port: address.port, host: address.host ?? null }
        : { path: address.path }),
      admin: admin === undefined ? null : { port: admin.port, host: admin.host },
    },
  };
  return () => {
    const snapshot = snapshotNow();
    return { ...fixed, cluster: clusterReport(snapshot), primary: snapshot.primary };
  };
}

function ownVersion(): string | null {
  try {
    const file = ownFile('package.json');
    const { name, version } = JSON.parse(readFileSync(file!, 'utf8')) as Record<string, string>;
    return name === 'nestjs-cluster' ? (version ?? null) : null;
  } catch {
    return null; // part of a bundle
  }
}
