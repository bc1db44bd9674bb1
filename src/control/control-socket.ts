import { once } from 'node:events';
import { chmodSync, lstatSync, renameSync, type Stats, unlinkSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { MAX_PATH_BYTES, ownUid, refuseSwappable } from '../contract/files/control-address.js';
import { probe } from '../contract/files/stale-sockets.js';

/** Read and write for the owner alone: what `umask` leaves of 0777. */
const OWNER_ONLY_UMASK = 0o177;

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
   * Listens beside its path and is moved there: so it is never seen before it answers, and libuv,
   * which removes the path of a socket that it closes, does not remove what somebody else put there.
   *
   * @param directory is this user's own, or one that nobody else can change files of this user in.
   * @param onConnection gets sockets that are paused.
   * @throws Error where it cannot be made; its message says what to do.
   */
  static async open(path: string, onConnection: (socket: Socket) => void): Promise<ControlSocket> {
    // No secret: node:crypto would cost every primary a megabyte.
    const beside = join(dirname(path), `.${Math.random().toString(16).slice(2, 8)}`);
    const bytes = Math.max(Buffer.byteLength(path), Buffer.byteLength(beside));
    if (bytes > MAX_PATH_BYTES) {
      throw new Error(
        `the path ${path} is too long for a unix socket (${bytes} bytes, at most ${MAX_PATH_BYTES}); give a shorter one`,
      );
    }
    refuseSwappable(dirname(path));
    const stale = await staleAt(path);
    const server = createServer({ pauseOnConnect: true }, onConnection);
    server.unref();
    await listen(server, beside);
    server.on('error', () => {}); // for want of descriptors it accepts later
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

  /** Whether a client that comes to its path finds it, nothing, or something else. */
  get atItsPath(): 'itself' | 'nothing' | 'another' {
    try {
      const stats = statsOf(this.path);
      if (stats === undefined) return 'nothing';
      return isSame(stats, this.made) ? 'itself' : 'another';
    } catch {
      return 'itself'; // this process may no longer look into the directory
    }
  }

  /** Removes it, unless another is in its place. */
  remove(): void {
    process.off('exit', this.#onExit);
    try {
      if (isSame(statsOf(this.path), this.made)) unlinkSync(this.path);
    } catch {
      // A directory that has become somebody else's: what is left there is stale.
    }
    this.server.close();
  }
}

/** Binds and listens in one call: the socket has its mode from the first moment on. */
async function listen(server: Server, path: string): Promise<void> {
  const listening = once(server, 'listening');
  const umask = process.umask(OWNER_ONLY_UMASK);
  try {
    server.listen(path);
  } finally {
    process.umask(umask);
  }
  await listening;
  // Some systems leave the umask out.
  chmodSync(path, 0o600);
}

/**
 * What is at the path and may be replaced: nothing, or a socket of this user on which nobody answers.
 *
 * @throws Error
 */
async function staleAt(path: string): Promise<Stats | undefined> {
  const stats = statsOf(path);
  if (stats === undefined) return undefined;
  if (!stats.isSocket()) throw new Error(`${path} is there already and is no socket; remove it`);
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
