import { lstatSync, readdirSync, unlinkSync } from 'node:fs';
import { connect } from 'node:net';
import { basename, join } from 'node:path';
import { ownUid } from './control-address.js';

/** A control socket. The name and pid come from its file name, so a blocked primary need not answer. */
export interface NamedSocket {
  readonly name: string;
  readonly pid: number;
  readonly path: string;
}

/** Maximum time to connect, in ms. A primary that takes longer is treated as blocked but alive. */
const CONNECT_MS = 1_000;

/**
 * In a directory of this user, finds sockets with a listening process. Removes the sockets left
 * behind by killed primaries.
 *
 * @param wanted selects sockets by the pid in their names.
 */
export async function listeningSockets(
  directory: string,
  wanted: (pid: number) => boolean = () => true,
): Promise<readonly NamedSocket[]> {
  const sockets = readdirSync(directory)
    .flatMap((file) => parseSocketName(join(directory, file)) ?? [])
    .filter(({ pid }) => wanted(pid));
  const errors = await Promise.all(sockets.map(({ path }) => probe(path)));
  return sockets.filter(({ path, pid }, index) => {
    if (errors[index] === 'ECONNREFUSED' && !isAlive(pid)) removeSocket(path);
    return [undefined, 'EAGAIN'].includes(errors[index]);
  });
}

/** Parses the file name of a socket with a default path. */
export function parseSocketName(path: string): NamedSocket | undefined {
  const [, name, pid] = /^([\w.-]+)\.(\d{1,10})\.sock$/.exec(basename(path)) ?? [];
  return name === undefined ? undefined : { name, pid: Number(pid), path };
}

/**
 * Removes the socket that a killed process left at a path.
 *
 * @throws Error with the code EADDRINUSE if another process listens there, or if the file is not a
 *   socket of this user.
 */
export async function removeStaleSocket(path: string): Promise<void> {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return;
  const isOwn = stats.isSocket() && stats.uid === ownUid();
  if (isOwn && (await probe(path)) === 'ECONNREFUSED') return removeSocket(path);
  const message = isOwn
    ? `another process is listening on ${path}; use another path`
    : `${path} exists but is not a socket of this user; remove it`;
  throw Object.assign(new Error(message), { code: 'EADDRINUSE' });
}

/** @returns the error code of a failed connection; `undefined` if a process listens. */
function probe(path: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const end = (code?: string): void => {
      resolve(code);
      socket.destroy();
    };
    socket.once('connect', () => end());
    socket.once('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
    socket.setTimeout(CONNECT_MS, () => end());
  });
}

export function removeSocket(path: string): void {
  try {
    const stats = lstatSync(path);
    if (stats.isSocket() && stats.uid === ownUid()) unlinkSync(path);
  } catch {
    // Another process has removed the file.
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
