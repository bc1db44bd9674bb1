import type { Worker } from 'node:worker_threads';
import { ClusterAddressError, ClusterConfigurationError } from '../../contract/errors/index.js';
import type { ResolvedAdminOptions } from '../../contract/options/index.js';
import { LEAVE_OUT_OF_BUNDLE } from '../../contract/process/own-file.js';
import { ThreadProgram } from '../../contract/process/thread-program.js';
import { whenFree } from '../../contract/process/when-free.js';
import type { AdminAnswer, AdminData, AdminSource, AdminThreadMessage } from './admin-messages.js';
import { hashOf } from './authorization.js';

/** Wait before an ended thread is restarted, in ms. It doubles with each failed start, up to the maximum. */
const RESTART_MS = 1_000;
const MAX_RESTART_MS = 30_000;

/**
 * The primary's own listener, in a separate thread, so that the supervisor's event loop only
 * answers messages of the thread, whatever the number of requests.
 */
export class AdminListener {
  url = '';

  private constructor(
    private readonly program: ThreadProgram,
    private readonly source: AdminSource,
    private readonly warn: (message: string) => void,
  ) {}

  /**
   * @param warn is called when the thread has ended and is restarted.
   * @returns once the thread listens.
   * @throws ClusterAddressError, or ClusterConfigurationError if the thread's program is missing.
   */
  static async open(
    { host, port, token }: ResolvedAdminOptions,
    source: AdminSource,
    warn: (message: string) => void,
  ): Promise<AdminListener> {
    const program = new ThreadProgram('admin');
    if (!program.isThere) {
      throw new ClusterConfigurationError(`there can be no admin listener: ${LEAVE_OUT_OF_BUNDLE}`);
    }
    const tokenHash = token === undefined ? undefined : new Uint8Array(hashOf(token));
    const listener = new AdminListener(program, source, warn);
    await whenFree(() => listener.#start({ host, port, tokenHash }));
    return listener;
  }

  /** Resolves once the thread listens. */
  async #start(data: AdminData): Promise<void> {
    // If the thread cannot start, this throws. The caller sees a rejection, as if the thread had
    // ended at once.
    const thread = this.program.start(data);
    return new Promise((resolve, reject) => {
      let port: number | undefined;
      let reason = 'it ended by itself';
      thread.on(
        'error',
        (error) => (reason = error instanceof Error ? error.message : String(error)),
      );
      thread.on('exit', () => {
        if (port === undefined) reject(new Error(reason));
        else this.#restart({ ...data, port }, reason);
      });
      thread.on('message', (message: AdminThreadMessage) => {
        switch (message.type) {
          case 'ask':
            return void this.#answer(thread, message.id, message.what);
          case 'listening':
            ({ port, url: this.url } = message);
            return resolve();
          case 'failed':
            void thread.terminate();
            return reject(new ClusterAddressError(addressOf(data), message.error));
        }
      });
    });
  }

  async #answer(thread: Worker, id: number, what: keyof AdminSource): Promise<void> {
    try {
      const answer = await this.source[what]();
      thread.postMessage({ id, answer } satisfies AdminAnswer);
    } catch (error) {
      // The primary goes on, and the client gets an error at the deadline of its request.
      this.warn(`the admin listener has no answer to ${what}: ${String(error)}`);
    }
  }

  #restart(data: AdminData, reason: string, afterMs = RESTART_MS): void {
    this.warn(`the admin listener on ${addressOf(data)} ended and is started anew: ${reason}`);
    setTimeout(() => {
      this.#start(data).catch((error: Error) =>
        this.#restart(data, error.message, Math.min(2 * afterMs, MAX_RESTART_MS)),
      );
    }, afterMs).unref();
  }
}

function addressOf({ host, port }: AdminData): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}
