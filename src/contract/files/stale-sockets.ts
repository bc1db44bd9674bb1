import { lstatSync, readdirSync, unlinkSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { ownUid, parseSocketName } from './control-address.js';

/** A control socket, and what its name tells: a primary that is stopped answers nothing. */
export interface NamedSocket {
  readonly name: string;
  readonly pid: number;
  readonly path: string;
}

/** How long a connection may take: a primary that is blocked for long accepts none. */
const CONNECT_MS = 1_000;

/**
 * The sockets of a directory of this user's own on which somebody listens. What a primary has left
 * that was killed is removed.
 */
export async function listeningSockets(directory: string): Promise<readonly NamedSocket[]> {
  const sockets = socketsIn(directory);
  const errors = await Promise.all(sockets.map(probeAndClear));
  return sockets.filter((_, index) => [undefined, 'EAGAIN'].includes(errors[index]));
}

/**
 * Removes what primaries have left that were killed. Those that live are left alone: whoever
 * connects to one has it load all that answers, which takes it more than a megabyte.
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

/** @returns the code of the error with which a connection fails; `undefined` where somebody listens. */
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
    // Somebody else was faster.
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
