import { once } from 'node:events';
import { chmodSync, existsSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { dirname, resolve } from 'node:path';
import {
  appName,
  claimDirectory,
  defaultSocketPath,
  refuseSwappable,
} from '../contract/files/control-address.js';
import { isAlive, listeningSockets, removeStaleSocket } from '../contract/files/sockets.js';
import type { ResolvedClusterOptions } from '../contract/options/resolve.js';
import { inTime } from '../contract/process/in-time.js';
import { type ControlledCluster, ControlServer } from './control-server.js';
import { statusOf } from './cluster-status.js';

/** With this umask, a new socket has the mode 0600: only the owner can read and write. */
const OWNER_ONLY_UMASK = 0o177;

const MAX_CONNECTIONS = 64;

/** Maximum time to write the last answers before the process exits. */
const LAST_ANSWERS_MS = 200;

/** How often to check the socket's file. Some systems remove it when the user logs out. */
const CHECK_MS = 5_000;

/** The unix socket through which commands reach this primary. Only this user can connect. */
export class ControlSocket {
  #listening: { readonly path: string; readonly server: Server } | undefined;
  #server: ControlServer | undefined;
  /** Whether the last warning reported a missing or unsafe socket. */
  #hasFailed = false;
  #check: NodeJS.Timeout | undefined;
  readonly #onExit = (): void => void this.#close();

  private constructor(
    private readonly cluster: ControlledCluster,
    private readonly options: ResolvedClusterOptions,
    private readonly warn: (message: string) => void,
    private readonly name = options.name ?? appName(process.argv[1]!),
    private readonly status = statusOf(name, options, () => cluster.snapshot()),
  ) {
    process.once('exit', this.#onExit);
  }

  /** Opens the socket. If that fails, logs one warning and retries while the cluster runs. Never rejects. */
  static async open(
    cluster: ControlledCluster,
    options: ResolvedClusterOptions,
    warn: (message: string) => void,
  ): Promise<ControlSocket> {
    const socket = new ControlSocket(cluster, options, warn);
    await socket.#keep();
    socket.#check = setInterval(() => void socket.#keep(), CHECK_MS).unref();
    return socket;
  }

  /** Answers the clients that wait for the exit code. Resolves when they have disconnected, or on timeout. */
  async end(exitCode: number): Promise<void> {
    clearInterval(this.#check);
    process.off('exit', this.#onExit);
    this.#server?.end(exitCode);
    await inTime(this.#close(), LAST_ANSWERS_MS, () => {});
  }

  /** Listens if this cluster has no socket at its path. Checks that the directory is safe. */
  async #keep(): Promise<void> {
    try {
      const path = this.#claimPath();
      if (!this.#isAt(path)) await this.#listen(path);
      if (this.#hasFailed) this.warn(`the control socket is available again: ${path}`);
      this.#hasFailed = false;
    } catch (error) {
      if (this.#hasFailed) return;
      this.#hasFailed = true;
      const isThere = this.#isAt(this.#listening?.path);
      const what = isThere ? 'the control socket is not safe' : 'no control socket';
      this.warn(
        `${what}: ${(error as Error).message}; retrying every ${CHECK_MS / 1_000} s; control: false disables the socket`,
      );
    }
  }

  #isAt(path: string | undefined): boolean {
    return path !== undefined && this.#listening?.path === path && existsSync(path);
  }

  /** @throws Error if another user can access the default directory or replace files in the given directory. */
  #claimPath(): string {
    const given = this.options.control?.path;
    const path = given ?? defaultSocketPath(this.name, process.pid);
    if (given === undefined) claimDirectory(dirname(path));
    else refuseSwappable(dirname(path));
    return path;
  }

  /** @throws Error if the socket cannot be created; its message contains the remedy. */
  async #listen(path: string): Promise<void> {
    await removeStaleSocket(path);
    void this.#close();
    const server = createServer((socket) => this.#take(socket));
    server.maxConnections = MAX_CONNECTIONS;
    const listening = once(server.unref(), 'listening');
    const umask = process.umask(OWNER_ONLY_UMASK);
    try {
      server.listen(resolve(path)); // a path of digits alone would be read as a port
    } finally {
      process.umask(umask);
    }
    await listening;
    server.on('error', () => {}); // without a free descriptor, the server accepts later
    chmodSync(path, 0o600); // some systems ignore the umask for sockets
    this.#listening = { path, server };
    // Removes sockets of killed primaries. Connecting to a live primary would make it load node:http.
    if (this.options.control?.path === undefined) {
      void listeningSockets(dirname(path), (pid) => !isAlive(pid)).catch(() => {});
    }
  }

  /** Closes the server. libuv also removes its file. Resolves when the clients have left. */
  async #close(): Promise<void> {
    const closing = this.#listening?.server;
    this.#listening = undefined;
    await new Promise((resolve) => void (closing ? closing.close(resolve) : resolve(undefined)));
  }

  #take(socket: Socket): void {
    // Created at the first connection: the server loads node:http, which most clusters never need.
    this.#server ??= new ControlServer(this.cluster, this.status, this.warn);
    this.#server.take(socket);
  }
}
