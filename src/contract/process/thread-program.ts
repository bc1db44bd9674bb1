import { readFileSync, realpathSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { LEAVE_OUT_OF_BUNDLE, ownFile } from './own-file.js';

/**
 * The program of a thread, in one file without imports but those of Node. Its source is kept: when
 * the thread is started, the release that this process was started from may have been removed.
 */
export class ThreadProgram {
  readonly #source: string | undefined;

  constructor(private readonly name: 'hub' | 'admin') {
    const file = ownFile(`threads/${name}-thread.cjs`);
    this.#source = file && readFileSync(file, 'utf8');
  }

  /** It may be missing where a bundler has left it behind. */
  get isThere(): boolean {
    return this.#source !== undefined;
  }

  /** @throws Error where the program was not there, or no thread is to be had. */
  start(workerData: unknown): Worker {
    if (this.#source === undefined) throw new Error(LEAVE_OUT_OF_BUNDLE);
    leaveRemovedDirectory();
    const thread = new Worker(this.#source, {
      eval: true,
      name: `nestjs-cluster ${this.name}`,
      workerData,
      // Nothing of the app's: no loader, no preloaded module, no NODE_OPTIONS.
      execArgv: [],
      env: {},
      trackUnmanagedFds: false,
    });
    thread.unref();
    return thread;
  }
}

/** Node starts no thread in a working directory that is gone. In `/` nobody else can leave files. */
function leaveRemovedDirectory(): void {
  try {
    realpathSync.native('.'); // process.cwd() is what Node remembers
  } catch {
    process.chdir('/');
  }
}
