import { lstatSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { appName } from '../../contract/files/app-name.js';
import { NoClusterError } from '../../contract/errors/index.js';
import { controlDirectories, problemOfDirectory } from '../../contract/files/control-address.js';
import { listeningSockets } from '../../contract/files/stale-sockets.js';

/** A control socket and the parts of its name. They are known even if no primary answers. */
export interface FoundCluster {
  /** Its name; the path of its socket, if the user has set that path. */
  readonly name: string;
  readonly pid: number | undefined;
  readonly path: string;
}

/** It takes several clusters to be in doubt. Exit code 64. */
export class AmbiguousClusterError extends Error {}

/** The message if no cluster is found. */
export const NOBODY =
  'no cluster of this user is running here, or it has no control socket; --cluster takes the path of one that is elsewhere';

/**
 * The cluster that is meant.
 *
 * @param wanted its name, the pid of its primary or the path of its socket. If it is left out, the
 *   only cluster is meant, or the only one of the app in whose directory the command runs.
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

/** The cluster that has the name of the nearest package.json, unless several have it. */
function ofThisApp(clusters: readonly FoundCluster[]): FoundCluster | undefined {
  const app = appName(join(process.cwd(), 'main.js'));
  const [own, ...others] = clusters.filter(({ name }) => name === app);
  if (own === undefined || others.length > 0) return undefined;
  process.stderr.write(
    `${labelOf(own)} is taken, the app of this directory; --cluster takes another\n`,
  );
  return own;
}

/** All clusters of this user that listen; what dead ones have left is removed. */
export async function clustersOfUser(): Promise<readonly FoundCluster[]> {
  return (await Promise.all(controlDirectories().filter(isOwn).map(listeningSockets))).flat();
}

export function labelOf({ name, pid }: FoundCluster): string {
  return pid === undefined ? name : `${name} (pid ${pid})`;
}

/** Whether the kernel has stopped the process, as SIGSTOP and debuggers do; Linux tells. */
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
