import { existsSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import type { Worker } from 'node:worker_threads';
import type { EmitEvent } from '../../contract/events/index.js';
import {
  claimDirectory,
  MAX_PATH_BYTES,
  ownDirectory,
} from '../../contract/files/control-address.js';
import { isAlive, removeSocket } from '../../contract/files/stale-sockets.js';
import { ThreadProgram } from '../../contract/process/thread-program.js';
import type { ThreadAddress } from '../../contract/snapshot/index.js';
import type { PackageThreadData, PackageThreadMessage } from '../../extension/package-thread.js';
import { NO_FAILURES, recordFailure, restartDelayMs } from '../decide/policies/restart.policy.js';

const CHECK_MS = 1_000;

/** A thread counts as hung after this many checks without a pulse. Load alone delays the pulse for less. */
const MAX_SILENT_CHECKS = 3;

/** `<pid of the primary>.<random>.thread`; a package's other sockets have more before the end. */
const SOCKET = /^(\d+)\.[\da-f]{8}\.(?:.+\.)?thread$/;

/** The names of a package's other sockets are at most this much longer. */
const MORE_BYTES = 14;

/** The threads that the primary runs for packages `@nestjs-cluster/*`. A worker names the package, never a file. */
export class PackageThreads {
  readonly #threads = new Map<string, PackageThread>();

  /** @param script the main script of the current release; packages are looked for from there. */
  constructor(
    private readonly emit: EmitEvent,
    private readonly script: () => string,
  ) {}

  /**
   * Starts the thread on the first call.
   *
   * @throws Error if the thread cannot run. A later call tries again.
   */
  async address(name: string): Promise<ThreadAddress> {
    let thread = this.#threads.get(name);
    if (thread === undefined) {
      const warn = (message: string): void => this.emit('warning', { message });
      thread = new PackageThread(name, new ThreadProgram(name, this.#find(name)), warn);
      this.#threads.set(name, thread);
    }
    return thread.address();
  }

  #find(name: string): string {
    const script = this.script();
    try {
      // `node .` runs a directory, so the script is looked at as one.
      const main = createRequire(join(script, '_')).resolve(`${name}/package.json`);
      return join(main, '../dist/thread.cjs');
    } catch {
      throw new Error(`${name} cannot be loaded from ${script}; npm install ${name}`);
    }
  }
}

/** A thread that ends or hangs is restarted without its state, with the backoff of workers. */
class PackageThread {
  readonly #pulse = new Int32Array(new SharedArrayBuffer(4));
  readonly #token = crypto.randomUUID();
  #path = '';
  #thread: Worker | undefined;
  #starting: Promise<void> | undefined;
  #starts = 0;
  #readyAt: number | undefined;
  #failures = NO_FAILURES;
  #warned: string | undefined;

  constructor(
    private readonly name: string,
    private readonly program: ThreadProgram,
    private readonly warn: (message: string) => void,
  ) {
    process.once('exit', () => removeSocket(this.#path));
    this.#watch();
  }

  async address(): Promise<ThreadAddress> {
    const starting = (this.#starting ??= this.#start());
    try {
      await starting;
    } catch (error) {
      // If it never ran, no 'exit' restarts it.
      if (this.#thread === undefined && this.#starting === starting) this.#starting = undefined;
      throw error;
    }
    return { path: this.#path, token: this.#token };
  }

  async #start(): Promise<void> {
    this.#path = socketPath(`${process.pid}.${crypto.randomUUID().slice(0, 8)}.thread`);
    this.#starts += 1;
    const data: PackageThreadData = {
      path: this.#path,
      token: this.#token,
      instance: `${process.pid}.${this.#starts}`,
      restarted: this.#starts > 1,
      pulse: this.#pulse,
    };
    const thread = this.program.start(data);
    this.#thread = thread;
    await new Promise<void>((resolve, reject) => {
      let reason = 'it ended by itself';
      thread.on('error', (error) => (reason = String((error as Error).message ?? error)));
      thread.on('message', (message: PackageThreadMessage) => {
        if (message.type === 'listening') {
          this.#readyAt = performance.now();
          return resolve();
        }
        reason = message.message;
        void thread.terminate();
      });
      thread.once('exit', () => {
        reject(new Error(reason));
        this.#ended(reason);
      });
    });
  }

  #ended(reason: string): void {
    const wasReady = this.#readyAt !== undefined;
    const livedMs = wasReady ? performance.now() - this.#readyAt! : undefined;
    this.#thread = this.#readyAt = undefined;
    removeSocket(this.#path);
    this.#failures = recordFailure(this.#failures, { cause: 'exit', livedMs });
    // Workers ask again each second, so a thread that cannot start is reported once.
    if (wasReady || reason !== this.#warned) {
      this.warn(`the thread of ${this.name} ended, and restarts without its state: ${reason}`);
    }
    this.#warned = reason;
    setTimeout(
      () => {
        this.#starting = undefined;
        this.address().catch(() => {}); // 'exit' follows, and starts it again
      },
      restartDelayMs(this.#failures, Math.random()),
    ).unref();
  }

  /** Ends a thread whose pulse stands still, or whose socket's file was removed (at the user's logout). */
  #watch(): void {
    let [seen, silent] = [-1, 0];
    let watched = this.#thread;
    setInterval(() => {
      const now = Atomics.load(this.#pulse, 0);
      silent = now === seen && watched === this.#thread ? silent + 1 : 0;
      [seen, watched] = [now, this.#thread];
      const isLost = this.#readyAt !== undefined && !existsSync(this.#path);
      if (silent >= MAX_SILENT_CHECKS || isLost) void this.#thread?.terminate();
    }, CHECK_MS).unref();
  }
}

/**
 * A path in the directory of the control socket, which only this user can enter. Absolute even if
 * TMPDIR is relative, because a worker may have another working directory.
 *
 * @throws Error without such a directory, or if the path is too long for a socket.
 */
function socketPath(file: string): string {
  const directory = resolve(ownDirectory());
  claimDirectory(directory);
  for (const other of readdirSync(directory)) {
    const pid = SOCKET.exec(other)?.[1]; // of a primary that was killed
    if (pid !== undefined && !isAlive(Number(pid))) removeSocket(join(directory, other));
  }
  const path = join(directory, file);
  if (Buffer.byteLength(path) + MORE_BYTES <= MAX_PATH_BYTES) return path;
  throw new Error(
    `a path in ${directory} is too long for a unix socket; set XDG_RUNTIME_DIR or TMPDIR to a shorter directory`,
  );
}
