import { type ChildProcess, fork } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { besideThis } from '../../../contract/process/own-file.js';
import { ClusterConfigurationError, NotMeasuredError } from '../../../contract/errors/index.js';
import type { LoadMessage, LoadReport, LoadRequest } from './load-protocol.js';

const PROGRAM = besideThis('dist/programs/tune-load.js')!;

/**
 * The path of autocannon, from the project in `directory` or from this package.
 *
 * @throws ClusterConfigurationError with the command that installs it.
 */
export function findAutocannon(directory: string): string {
  for (const from of [join(directory, 'package.json'), import.meta.url]) {
    try {
      return createRequire(from).resolve('autocannon');
    } catch {
      // not there
    }
  }
  throw new ClusterConfigurationError(
    'tune makes its load with autocannon, which is not installed here: npm install --save-dev autocannon',
  );
}

/** Runs autocannon in its own process. */
export class LoadGenerator {
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;

  constructor(autocannon: string) {
    this.#child = fork(PROGRAM, [autocannon], {
      execArgv: [],
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    this.#child.stderr!.setEncoding('utf8').on('data', (text: string) => (this.#said += text));
    this.#ended = new Promise((resolve) => {
      this.#child.once('close', () => resolve());
      this.#child.once('error', () => resolve());
    });
  }

  /** The error output of the process. */
  #said = '';

  /** Resolves once the process has started and loaded autocannon, so that `run` begins at once. */
  async loaded(): Promise<void> {
    await this.#message('loaded');
  }

  async run(request: LoadRequest): Promise<LoadReport> {
    this.#child.send(request);
    return (await this.#message('done')).report;
  }

  /** Kills the process at once, because the process has nothing to clean up. */
  kill(): void {
    this.#child.kill('SIGKILL');
  }

  async end(): Promise<void> {
    this.kill();
    await this.#ended;
  }

  async #message<T extends LoadMessage['type']>(type: T): Promise<LoadMessage & { type: T }> {
    const message = await Promise.race([
      new Promise<LoadMessage>((resolve) => this.#child.once('message', resolve)),
      this.#ended,
    ]);
    if (message?.type === type) return message as LoadMessage & { type: T };
    throw new NotMeasuredError(`the load generator ended before it was done: ${this.#said}`);
  }
}
