import { lstatSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import {
  MAX_PATH_BYTES,
  ownDirectory,
  ownTemporaryDirectory,
  packageName,
  problemOfDirectory,
} from '../contract/files/control-address.js';
import { listeningSockets, type NamedSocket } from '../contract/files/sockets.js';
import type { ClusterStatus } from '../control/cluster-status.js';
import { CommandError, EXIT } from './output.js';

/** A primary that does not answer within this time is treated as blocked or stopped. */
const ANSWER_MS = 1_000;

export const SILENCE =
  'the primary does not answer: it is blocked, or stopped by SIGSTOP or a debugger (kill -CONT continues it)';

/** A cluster did not answer. Exit code 69. */
export class UnreachableError extends CommandError {
  constructor(
    label: string,
    readonly why: string,
  ) {
    super(`cannot reach the cluster ${label}: ${why}`, EXIT.unavailable);
  }
}

/** Sends requests to one cluster over its control socket. */
export class ControlClient {
  /** @param cluster has no pid if the user gave the path of the socket. */
  constructor(readonly cluster: Omit<NamedSocket, 'pid'> & { readonly pid?: number }) {}

  get label(): string {
    const { name, pid } = this.cluster;
    return pid === undefined ? name : `${name} (pid ${pid})`;
  }

  /** @throws UnreachableError if no answer comes in time, CommandError if the cluster refuses. */
  get<T>(path: string, timeoutMs = ANSWER_MS): Promise<T> {
    return this.#ask('GET', path, undefined, AbortSignal.timeout(timeoutMs));
  }

  status(): Promise<ClusterStatus> {
    return this.get('/v1/status');
  }

  /**
   * Waits for the outcome without a time limit. Sends nothing to a blocked primary, because it would
   * make the change later.
   *
   * @throws UnreachableError, CommandError
   */
  async post<T>(path: string, body: object = {}): Promise<T> {
    await this.status();
    return this.#ask('POST', path, body);
  }

  async #ask<T>(method: string, path: string, body?: object, signal?: AbortSignal): Promise<T> {
    const { path: socketPath } = this.cluster;
    let response: IncomingMessage;
    let answer: string;
    try {
      response = await new Promise((resolve, reject) => {
        request({ socketPath, method, path, agent: false, signal }, resolve)
          .once('error', reject)
          .end(body && JSON.stringify(body));
      });
      answer = await text(response);
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      const isSilent = signal?.aborted || code === 'EAGAIN';
      throw new UnreachableError(this.label, isSilent ? SILENCE : message);
    }
    if (response.statusCode === 200) return JSON.parse(answer) as T;
    throw new CommandError(
      reasonIn(answer) ?? `the cluster answered with status ${response.statusCode}`,
    );
  }
}

function reasonIn(answer: string): string | undefined {
  try {
    return (JSON.parse(answer) as { readonly error: { readonly message: string } }).error.message;
  } catch {
    return undefined; // the path that the user gave belongs to another program
  }
}

/** All running clusters of this user. Removes the sockets of dead clusters. */
export async function runningClusters(): Promise<readonly ControlClient[]> {
  const directories = [...new Set([ownDirectory(), ownTemporaryDirectory()])].filter(isSafe);
  const found = await Promise.all(directories.map((each) => listeningSockets(each)));
  return found.flat().map((each) => new ControlClient(each));
}

function isSafe(directory: string): boolean {
  const stats = lstatSync(directory, { throwIfNoEntry: false });
  return stats !== undefined && problemOfDirectory(stats) === undefined;
}

export const NO_CLUSTER =
  'no cluster of this user is running, or it has no control socket; for a socket at another path, use --cluster <path>';

/**
 * Finds the cluster that the user selected.
 *
 * @param wanted the cluster's name, the pid of its primary or the path of its socket. Default: the
 *   cluster of the app in the working directory, by the name in the nearest package.json. Outside any
 *   project: the only cluster.
 * @throws CommandError with exit code 69 if there is none, 64 if there are several.
 */
export async function findCluster(wanted: string | undefined): Promise<ControlClient> {
  if (wanted?.includes('/')) return new ControlClient({ name: wanted, path: wanted });
  const all = await runningClusters();
  const app = wanted === undefined ? packageName(process.cwd()) : undefined;
  const name = wanted ?? app;
  const fit = all.filter(
    ({ cluster }) => name === undefined || hasName(cluster, name) || String(cluster.pid) === wanted,
  );
  if (fit.length === 1) return fit[0]!;
  const list = (fit.length > 1 ? fit : all).map(({ label }) => label).join(', ');
  if (fit.length > 1) {
    throw new CommandError(
      `several clusters are running: ${list}; choose one with --cluster`,
      EXIT.usage,
    );
  }
  if (all.length === 0) throw new CommandError(NO_CLUSTER, EXIT.unavailable);
  const missing =
    app === undefined
      ? `no cluster has the name or pid ${JSON.stringify(wanted)}`
      : `${app}, the app in this directory, is not running`;
  throw new CommandError(
    `${missing}; running: ${list}; choose one with --cluster`,
    EXIT.unavailable,
  );
}

/** Whether the cluster has the name. The length of a socket path is limited, so the name in it may be truncated. */
function hasName({ name, path }: ControlClient['cluster'], wanted: string): boolean {
  const isCut = Buffer.byteLength(path) === MAX_PATH_BYTES;
  return isCut ? wanted.startsWith(name) : name === wanted;
}
