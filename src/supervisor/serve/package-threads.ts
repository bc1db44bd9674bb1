import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
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

/** `<pid of the primary>.<random>.thread`; a package's other sockets have a number before the end. */
const SOCKET = /^(\d+)\.[\da-f]{8}\.(?:.+\.)?thread$/;

/** The threads that the primary runs for packages `@nestjs-cluster/*`. A worker names the package, never a file. */
export class PackageThreads {
  readonly #threads = new Map<string, PackageThread>();

  constructor(
    private readonly emit: EmitEvent,
    private readonly script = process.argv[1]!,
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
    try {
      const main = createRequire(this.script).resolve(`${name}/package.json`);
      return join(main, '../dist/thread.cjs');
    } catch {
      throw new Error(
        `${name} is not installed where ${this.script} can load it; npm install ${name}`,
      );
    }
  }
}

/** A thread that ends or hangs is restarted without its state, with the backoff of workers. */
class PackageThread {
  readonly #pulse = new Int32Array(new SharedArrayBuffer(4));
  readonly #token = crypto.randomUUID();
  readonly #path: string;
  #thread: Worker | undefined;
  #starting: Promise<void> | undefined;
  #starts = 0;
  #readyAt: number | undefined;
  #failures = NO_FAILURES;

  constructor(
    private readonly name: string,
    private readonly program: ThreadProgram,
    private readonly warn: (message: string) => void,
  ) {
    this.#path = socketPath(`${process.pid}.${crypto.randomUUID().slice(0, 8)}.thread`);
    process.once('exit', () => removeSocket(this.#path));
    this.#watch();
  }

  async address(): Promise<ThreadAddress> {
    this.#starting ??= this.#start();
    try {
      await this.#starting;
    } catch (error) {
      if (this.#thread === undefined) this.#starting = undefined; // it never ran, so no 'exit' restarts it
      throw error;
    }
    return { path: this.#path, token: this.#token };
  }

  async #start(): Promise<void> {
    this.#starts += 1;
    this.#readyAt = undefined;
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
    const livedMs = this.#readyAt === undefined ? undefined : performance.now() - this.#readyAt;
    this.#failures = recordFailure(this.#failures, { cause: 'exit', livedMs });
    const delayMs = restartDelayMs(this.#failures, Math.random());
    // Each worker asks again each second, so only the first of several failures in a row is told.
    if (this.#failures.inARow <= 1) {
      this.warn(`the thread of ${this.name} ended, and restarts without its state: ${reason}`);
    }
    setTimeout(() => {
      this.#starting = this.#start();
      this.#starting.catch(() => {}); // 'exit' follows, and starts it again
    }, delayMs).unref();
  }

  /** Ends a thread whose pulse stands still, or whose socket's file was removed (at the user's logout). */
  #watch(): void {
    let seen = -1;
    let silent = 0;
    let watched = this.#thread;
    setInterval(() => {
      const now = Atomics.load(this.#pulse, 0);
      silent = now === seen && watched === this.#thread ? silent + 1 : 0;
      seen = now;
      watched = this.#thread;
      const isLost = this.#readyAt !== undefined && !existsSync(this.#path);
      if (silent < MAX_SILENT_CHECKS && !isLost) return;
      silent = 0;
      void this.#thread?.terminate();
    }, CHECK_MS).unref();
  }
}

/**
 * A path beside the control socket, or in a new directory that only this user can enter.
 *
 * @throws Error if no directory can be made, or if the path is too long for a socket.
 */
function socketPath(file: string): string {
  let directory: string;
  try {
    // Absolute even if TMPDIR is relative, because a worker may have another working directory.
    directory = resolve(ownDirectory());
    claimDirectory(directory);
    removeStale(directory);
  } catch {
    const made = mkdtempSync(resolve(tmpdir(), 'nestjs-cluster-'));
    process.once('exit', () => rmSync(made, { recursive: true, force: true }));
    directory = made;
  }
  const path = join(directory, file);
  if (Buffer.byteLength(path) + OWNER_BYTES <= MAX_PATH_BYTES) return path;
  throw new Error(
    `a path in ${tmpdir()} is too long for a unix socket; set XDG_RUNTIME_DIR or TMPDIR to a shorter directory`,
  );
}

/** Sockets of workers are in the same directory. Their names are at most this much longer. */
const OWNER_BYTES = 14;

/** Removes sockets of primaries that were killed. */
function removeStale(directory: string): void {
  for (const file of readdirSync(directory)) {
    const pid = SOCKET.exec(file)?.[1];
    if (pid !== undefined && !isAlive(Number(pid))) removeSocket(join(directory, file));
  }
}
