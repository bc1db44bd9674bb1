import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { eventually } from './eventually.js';
import { SYSTEM_ENVIRONMENT } from './system-packages.js';

/** A program of the system that serves, such as nginx. */
export class ServerProcess {
  /** Everything it wrote, to show when a test fails. */
  output = '';
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;

  private constructor(command: string, args: readonly string[]) {
    this.#child = spawn(command, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: SYSTEM_ENVIRONMENT,
    });
    for (const stream of [this.#child.stdout!, this.#child.stderr!]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => (this.output += chunk));
    }
    this.#ended = once(this.#child, 'close');
  }

  /** Resolves once it `serves`; rejects with its output if it ends before that. */
  static async start(
    command: string,
    args: readonly string[],
    serves: (output: string) => boolean | Promise<boolean>,
  ): Promise<ServerProcess> {
    const server = new ServerProcess(command, args);
    try {
      await eventually(`${command} to serve`, () => {
        if (server.#child.exitCode !== null) throw new Error(`${command} ended: ${server.output}`);
        return serves(server.output);
      });
      return server;
    } catch (error) {
      await server.stop();
      throw error;
    }
  }

  get pid(): number {
    return this.#child.pid!;
  }

  /** Ends it, and its own workers with it. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    if (this.#child.exitCode === null) this.#child.kill(signal);
    await this.#ended;
  }
}
