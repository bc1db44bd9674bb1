import { mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { EmitEvent } from '../contract/log/events.js';
import type { PackageThreadData } from '../extension/package-thread.js';
import { NO_FAILURES, recordFailure, restartDelayMs } from '../decide/policies/failure.policy.js';

/** The threads that the primary runs for `@nestjs-cluster/*` packages. A worker can request a package, never a file. */
export class PackageThreads {
  readonly #threads = new Map<string, PackageThread>();

  /** @param script the main script of the current release, from which packages are resolved. */
  constructor(
    private readonly emit: EmitEvent,
    private readonly script: () => string,
  ) {}

  /**
   * Starts the thread on the first call.
   *
   * @returns the path of the socket on which the thread listens.
   * @throws Error if the thread cannot run. A later call tries again.
   */
  async path(name: string): Promise<string> {
    const thread = this.#threads.get(name) ?? new PackageThread(name, this.#read(name), this.emit);
    this.#threads.set(name, thread);
    return thread.path();
  }

  /** Reads the thread's program, one file that imports only Node's own modules. */
  #read(name: string): string {
    const script = this.script();
    try {
      // The script may be a directory (`node .`), so it is treated as one.
      const main = createRequire(join(script, '_')).resolve(`${name}/package.json`);
      return readFileSync(join(main, '../dist/thread.cjs'), 'utf8');
    } catch {
      throw new Error(`${name} cannot be loaded from ${script}; run npm install ${name}`);
    }
  }
}

/** The thread of one package. If it ends, the first call after a delay restarts it, without its state. */
class PackageThread {
  /** Only this user can access it. Absolute even if TMPDIR is relative: a worker may have another working directory. */
  readonly #directory = mkdtempSync(join(resolve(tmpdir()), 'nestjs-cluster-thread-'));
  #listening: Promise<string> | undefined;
  #starts = 0;
  #failures = NO_FAILURES;

  /** @param source the program, kept in memory because the files of the release may be removed. */
  constructor(
    private readonly name: string,
    private readonly source: string,
    private readonly emit: EmitEvent,
  ) {
    process.once('exit', () => rmSync(this.#directory, { recursive: true, force: true }));
  }

  path(): Promise<string> {
    return (this.#listening ??= this.#start());
  }

  #start(): Promise<string> {
    const restarted = this.#starts > 0;
    const path = join(this.#directory, `${(this.#starts += 1)}.sock`);
    const thread = startThread(this.name, this.source, { path, restarted });
    return new Promise((listening, failed) => {
      let readyAt: number | undefined;
      let reason = 'it exited without an error';
      thread.once('message', () => {
        readyAt = performance.now();
        listening(path);
      });
      thread.on('error', (error) => (reason = String((error as Error).message ?? error)));
      thread.once('exit', () => {
        failed(new Error(reason));
        this.#ended(reason, readyAt);
      });
    });
  }

  #ended(reason: string, readyAt: number | undefined): void {
    const message = `the thread of ${this.name} ended, and restarts without its state: ${reason}`;
    this.emit('warning', { message });
    const livedMs = readyAt === undefined ? undefined : performance.now() - readyAt;
    this.#failures = recordFailure(this.#failures, { cause: 'exit', livedMs });
    const delayMs = restartDelayMs(this.#failures, Math.random());
    setTimeout(() => (this.#listening = undefined), delayMs).unref();
  }
}

function startThread(name: string, source: string, workerData: PackageThreadData): Worker {
  // Node cannot start a thread in a removed working directory. `/` is safe: only root can write to it.
  try {
    realpathSync.native('.'); // process.cwd() may return a cached path
  } catch {
    process.chdir('/');
  }
  const thread = new Worker(source, {
    eval: true,
    name: `nestjs-cluster ${name}`,
    workerData,
    // The thread inherits nothing from the app: no loader, no preloaded module, no NODE_OPTIONS.
    execArgv: [],
    env: {},
  });
  thread.unref();
  return thread;
}
