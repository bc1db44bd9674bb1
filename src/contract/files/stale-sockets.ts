import { lstatSync, readdirSync, unlinkSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { ownUid, parseSocketName } from './control-address.js';

/** A control socket and the parts of its name, which are known even if its primary does not answer. */
export interface NamedSocket {
  readonly name: string;
  readonly pid: number;
  readonly path: string;
}

/** Maximum time to connect, in ms. Beyond it the primary counts as blocked but alive. */
const CONNECT_MS = 1_000;

/** Finds sockets with a listening process in a directory of this user. Removes the sockets of killed primaries. */
export async function listeningSockets(directory: string): Promise<readonly NamedSocket[]> {
  const sockets = socketsIn(directory);
  const errors = await Promise.all(sockets.map(probeAndClear));
  return sockets.filter((_, index) => [undefined, 'EAGAIN'].includes(errors[index]));
}

/**
 * Removes the sockets that killed primaries have left. Does not connect to live primaries, because
 * a connection makes a primary load its control server, which takes more than 1 MB.
 */
export async function removeStaleSockets(directory: string): Promise<void> {
  await Promise.all(
    socketsIn(directory)
      .filter(({ pid }) => !isAlive(pid))
      .map(probeAndClear),
  );
}

function socketsIn(directory: string): NamedSocket[] {
  return readdirSync(directory).flatMap((file) => {
    const named = parseSocketName(file);
    return named === undefined ? [] : [{ ...named, path: join(directory, file) }];
  });
}

async function probeAndClear({ path, pid }: NamedSocket): Promise<string | undefined> {
  const error = await probe(path);
  if (error === 'ECONNREFUSED' && !isAlive(pid)) removeSocket(path);
  return error;
}

/** @returns the error code of a failed connection; `undefined` if a process listens. */
export function probe(path: string): Promise<string | undefined> {
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
