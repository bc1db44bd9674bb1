import { readFileSync, realpathSync } from 'node:fs';
import { Worker } from 'node:worker_threads';

/**
 * The program of a thread, in one file that imports only modules of Node. The source is kept in
 * memory, because the files of the release may be removed before the thread starts.
 */
export class ThreadProgram {
  readonly #source: string;

  constructor(
    private readonly name: string,
    file: string,
  ) {
    this.#source = readFileSync(file, 'utf8');
  }

  /** @throws Error if the thread cannot start. */
  start(workerData: unknown): Worker {
    leaveRemovedDirectory();
    const thread = new Worker(this.#source, {
      eval: true,
      name: `nestjs-cluster ${this.name}`,
      workerData,
      // The thread takes nothing from the app: no loader, no preloaded module, no NODE_OPTIONS.
      execArgv: [],
      env: {},
      trackUnmanagedFds: false,
    });
    thread.unref();
    return thread;
  }
}

/** Node cannot start a thread in a removed working directory. `/` is safe: only root can write to it. */
function leaveRemovedDirectory(): void {
  try {
    realpathSync.native('.'); // process.cwd() may return a cached path
  } catch {
    process.chdir('/');
  }
}
