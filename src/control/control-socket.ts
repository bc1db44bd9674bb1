import { once } from 'node:events';
import { chmodSync, lstatSync, renameSync, type Stats, unlinkSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { MAX_PATH_BYTES, ownUid, refuseSwappable } from '../contract/files/control-address.js';
import { probe } from '../contract/files/stale-sockets.js';

/** With this umask a new socket has the mode 0600: read and write for the owner alone. */
const OWNER_ONLY_UMASK = 0o177;

const MAX_CONNECTIONS = 64;

/** A unix socket that only this user can connect to. */
export class ControlSocket {
  readonly #onExit = (): void => this.remove();

  private constructor(
    readonly path: string,
    private readonly server: Server,
    private readonly made: Pick<Stats, 'ino' | 'dev'>,
  ) {
    process.once('exit', this.#onExit);
  }

  /**
   * Listens at a temporary path next to `path`, and then renames the socket, so that clients never
   * find a socket that does not answer yet. When libuv closes the socket, it removes the temporary
   * path, and never another process's file at `path`.
   *
   * @param path in a directory in which no other user can replace files of this user.
   * @throws Error if the socket cannot be made; its message says what to do.
   */
  static async open(path: string, onConnection: (socket: Socket) => void): Promise<ControlSocket> {
    // The name is not a secret, so node:crypto is not needed: it takes a megabyte of memory.
    const beside = join(dirname(path), `.s${Math.random().toString(16).slice(2, 8)}`);
    const bytes = Math.max(Buffer.byteLength(path), Buffer.byteLength(beside));
    if (bytes > MAX_PATH_BYTES) {
      throw new Error(
        `the path ${path} is too long for a unix socket (${bytes} bytes, at most ${MAX_PATH_BYTES}); give a shorter one`,
      );
    }
    refuseSwappable(dirname(path));
    const stale = await staleAt(path);
    const server = createServer(onConnection);
    server.maxConnections = MAX_CONNECTIONS;
    server.unref();
    await listen(server, beside);
    server.on('error', () => {}); // without a free descriptor, the server accepts later
    const made = lstatSync(beside);
    try {
      if (!isSame(statsOf(path), stale))
        throw new Error(`${path} is being made by another process`);
      renameSync(beside, path);
    } catch (error) {
      server.close();
      throw error;
    }
    return new ControlSocket(path, server, made);
  }

  /** Whether the path leads to this socket, to nothing, or to another file. */
  get atItsPath(): 'itself' | 'nothing' | 'another' {
    try {
      const stats = statsOf(this.path);
      if (stats === undefined) return 'nothing';
      return isSame(stats, this.made) ? 'itself' : 'another';
    } catch {
      return 'itself'; // this process may no longer read the directory
    }
  }

  /** Removes the socket's file, unless the path now leads to another file. Closes the server. */
  remove(): void {
    process.off('exit', this.#onExit);
    try {
      if (isSame(statsOf(this.path), this.made)) unlinkSync(this.path);
    } catch {
      // The directory now belongs to another user. The stale socket stays there.
    }
    this.server.close();
  }
}

/** Listens under a umask, so that the socket has its mode from the first moment on. */
async function listen(server: Server, path: string): Promise<void> {
  const listening = once(server, 'listening');
  const umask = process.umask(OWNER_ONLY_UMASK);
  try {
    server.listen(path);
  } finally {
    process.umask(umask);
  }
  await listening;
  // Some systems ignore the umask for sockets.
  chmodSync(path, 0o600);
}

/**
 * The stats of the socket at the path, if it may be replaced because it belongs to this user and no
 * process answers on it. `undefined` if the path is free.
 *
 * @throws Error if the path is not free and must not be replaced.
 */
async function staleAt(path: string): Promise<Stats | undefined> {
  const stats = statsOf(path);
  if (stats === undefined) return undefined;
  if (!stats.isSocket()) throw new Error(`${path} exists already and is not a socket; remove it`);
  if (stats.uid !== ownUid()) {
    throw new Error(`${path} is a socket of another user (uid ${stats.uid}); remove it`);
  }
  const answer = await probe(path);
  if (answer !== 'ECONNREFUSED') {
    throw new Error(
      `another process listens on ${path}${answer === undefined ? '' : ` (${answer})`}; give another path`,
    );
  }
  return stats;
}

function statsOf(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false });
}

function isSame(
  a: Pick<Stats, 'ino' | 'dev'> | undefined,
  b: Pick<Stats, 'ino' | 'dev'> | undefined,
): boolean {
  return a?.ino === b?.ino && a?.dev === b?.dev;
}
