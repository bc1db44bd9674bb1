import { constants } from 'node:os';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** That somebody asked this process to end: once, and everything is ended well; twice, and it is killed. */
export class Interruption implements Disposable {
  readonly started = new Set<{ kill(): void }>();
  readonly #controller = new AbortController();
  #exitCode = 0;

  readonly #receive = (signal: NodeJS.Signals): void => {
    this.#exitCode = 128 + constants.signals[signal];
    if (this.#controller.signal.aborted) process.exit(this.#exitCode);
    process.stderr.write(`${signal}: ending the app\n`);
    this.#controller.abort();
  };

  /** Nothing that was started outlives this process, however it exits. */
  readonly #exit = (): void => {
    for (const each of this.started) each.kill();
  };

  constructor() {
    for (const signal of SIGNALS) process.on(signal, this.#receive);
    process.on('exit', this.#exit);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** That a shell expects of what a signal has ended. */
  get exitCode(): number {
    return this.#exitCode;
  }

  [Symbol.dispose](): void {
    for (const signal of SIGNALS) process.off(signal, this.#receive);
    process.off('exit', this.#exit);
  }
}
