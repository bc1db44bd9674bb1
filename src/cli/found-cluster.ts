import { lstatSync, readFileSync } from 'node:fs';
import { USAGE_EXIT_CODE } from './arguments.js';
import { packageName } from '../contract/files/app-name.js';
import { ClusterError, NoClusterError } from '../contract/errors/index.js';
import {
  controlDirectories,
  MAX_PATH_BYTES,
  problemOfDirectory,
} from '../contract/files/control-address.js';
import { listeningSockets } from '../contract/files/stale-sockets.js';

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
 *   cluster of the app in the working directory, whose nearest package.json has its name. Outside
 *   any project: the only cluster.
 * @throws NoClusterError, AmbiguousClusterError
 */
export async function findCluster(wanted: string | undefined): Promise<FoundCluster> {
  if (wanted?.includes('/')) return { name: wanted, pid: undefined, path: wanted };
  const app = wanted === undefined ? packageName(process.cwd()) : undefined;
  const all = await clustersOfUser();
  const fit = all.filter((each) =>
    app === undefined
      ? wanted === undefined || hasName(each, wanted) || String(each.pid) === wanted
      : hasName(each, app),
  );
  if (fit.length === 1) return fit[0]!;
  if (fit.length > 1) {
    const named = wanted === undefined && app === undefined ? '' : ` named ${fit[0]!.name}`;
    throw new AmbiguousClusterError(
      `there are several clusters${named}: ${fit.map(labelOf).join(', ')}; choose by --cluster`,
    );
  }
  if (all.length === 0) throw new NoClusterError(NOBODY);
  const running = all.map(labelOf).join(', ');
  throw new NoClusterError(
    app === undefined
      ? `no cluster has the name or pid ${JSON.stringify(wanted)}; running: ${running}`
      : `${app}, the app of this directory, is not running; running: ${running} (use -c)`,
  );
}

/** Whether the cluster has the name. The path of a socket has a maximum length, so the name in it may be cut. */
function hasName({ name, path }: FoundCluster, wanted: string): boolean {
  const isCut = Buffer.byteLength(path) === MAX_PATH_BYTES;
  return isCut ? wanted.startsWith(name) : name === wanted;
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
