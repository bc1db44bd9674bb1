import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';

/** Maximum number of the last output lines of a process that an error about it shows. */
const LAST_LINES = 20;

/** A process that was started, and the lines it writes to both of its streams. */
export class StartedProcess {
  /** Resolves with how it ended, in words. */
  ended;
  #child;
  #name;
  #last = [];
  #listeners = new Set();

  /** Made in the tick in which the child was spawned: no line is missed. */
  constructor(child, name) {
    this.#child = child;
    this.#name = name;
    this.ended = new Promise((resolve) => {
      child.once('error', (error) => resolve(error.message));
      // Not 'exit': what it wrote last has been read.
      child.once('close', (code, signal) =>
        resolve(signal ? `killed by ${signal}` : `code ${code}`),
      );
    });
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => this.#hear(line));
    }
  }

  get pid() {
    return this.#child.pid;
  }

  /** Whether its pid is still its own. */
  get runs() {
    return (
      this.pid !== undefined && this.#child.exitCode === null && this.#child.signalCode === null
    );
  }

  kill(signal) {
    this.#child.kill(signal);
  }

  /** Calls back with each line from now on. */
  onLine(listener) {
    this.#listeners.add(listener);
  }

  /**
   * Resolves with the first thing other than `undefined` that `read` makes of a line written from
   * now on; rejects when the process ends before, and after `timeoutMs`.
   */
  async line(read, timeoutMs = 60_000) {
    const timer = new AbortController();
    let listener;
    const found = new Promise((resolve) => {
      listener = (line) => {
        const result = read(line);
        if (result !== undefined) resolve(result);
      };
      this.#listeners.add(listener);
    });
    const late = delay(timeoutMs, undefined, { signal: timer.signal }).then(() =>
      Promise.reject(this.error(`was not as far within ${timeoutMs / 1_000} s`)),
    );
    try {
      return await this.whileRunning(Promise.race([found, late]));
    } finally {
      this.#listeners.delete(listener);
      timer.abort();
    }
  }

  /** Settles as `promise` does; rejects if the process ends first. */
  whileRunning(promise) {
    const ended = this.ended.then((how) => Promise.reject(this.error(`ended (${how})`)));
    return Promise.race([promise, ended]);
  }

  /** An error about this process, with the last lines that the process wrote. */
  error(what) {
    return new Error([`${this.#name} ${what}`, ...this.#last].join('\n  '));
  }

  #hear(line) {
    if (process.env.BENCH_LOG) console.error(`${this.pid}: ${line}`);
    this.#last = [...this.#last, line].slice(-LAST_LINES);
    for (const listener of this.#listeners) listener(line);
  }
}
