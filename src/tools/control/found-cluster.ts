import { lstatSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { USAGE_EXIT_CODE } from '../cli/arguments.js';
import { appName } from '../../contract/files/app-name.js';
import { ClusterError, NoClusterError } from '../../contract/errors/index.js';
import { controlDirectories, problemOfDirectory } from '../../contract/files/control-address.js';
import { listeningSockets } from '../../contract/files/stale-sockets.js';

/** A cluster, found by the file name of its control socket, without a request to its primary. */
export interface FoundCluster {
  /** The name of the cluster, or the path of its socket if the user has given the path. */
  readonly name: string;
  readonly pid: number | undefined;
  readonly path: string;
}

/** More than one cluster matches. Exit code 64 (`EX_USAGE`). */
export class AmbiguousClusterError extends ClusterError {
  readonly code = 'CLUSTER_AMBIGUOUS';
  readonly exitCode = USAGE_EXIT_CODE;
}

export const NOBODY =
  'no cluster of this user is running here, or it has no control socket; --cluster takes the path of one that is elsewhere';

/**
 * Finds the cluster that the user means.
 *
 * @param wanted the cluster's name, the pid of its primary or the path of its socket. Default: the
 *   only cluster. If there are several, the only one of the app in the working directory.
 * @throws NoClusterError, AmbiguousClusterError
 */
export async function findCluster(wanted: string | undefined): Promise<FoundCluster> {
  if (wanted?.includes('/')) return { name: wanted, pid: undefined, path: wanted };
  const all = await clustersOfUser();
  const fit = all.filter(
    ({ name, pid }) => wanted === undefined || name === wanted || String(pid) === wanted,
  );
  if (fit.length === 1) return fit[0]!;
  if (wanted === undefined && fit.length > 1) {
    const own = ofThisApp(fit);
    if (own !== undefined) return own;
  }
  const shown = (fit.length > 0 ? fit : all).map(labelOf).join(', ');
  if (fit.length > 1) {
    throw new AmbiguousClusterError(`there are several clusters: ${shown}; choose by --cluster`);
  }
  throw new NoClusterError(
    shown === ''
      ? NOBODY
      : `no cluster has the name or pid ${JSON.stringify(wanted)}; there are ${shown}`,
  );
}

/** The cluster with the name in the nearest package.json. `undefined` if several have that name. */
function ofThisApp(clusters: readonly FoundCluster[]): FoundCluster | undefined {
  const app = appName(join(process.cwd(), 'main.js'));
  const [own, ...others] = clusters.filter(({ name }) => name === app);
  if (own === undefined || others.length > 0) return undefined;
  process.stderr.write(
    `using ${labelOf(own)}, the app of this directory; --cluster chooses another\n`,
  );
  return own;
}

/** All clusters of this user that listen. Removes the sockets of clusters that have died. */
export async function clustersOfUser(): Promise<readonly FoundCluster[]> {
  return (await Promise.all(controlDirectories().filter(isOwn).map(listeningSockets))).flat();
}

export function labelOf({ name, pid }: FoundCluster): string {
  return pid === undefined ? name : `${name} (pid ${pid})`;
}

/** Whether SIGSTOP or a debugger has stopped the process. Always `false` if this is not Linux. */
export function isStopped(pid: number | undefined): boolean {
  try {
    return /^\d+ \(.*\) [Tt] /s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

function isOwn(directory: string): boolean {
  const stats = lstatSync(directory, { throwIfNoEntry: false });
  return stats !== undefined && problemOfDirectory(stats) === undefined;
}
