import { Logger } from '@nestjs/common';
import { inspected, messageOf, oneLine } from '../../contract/errors/index.js';

/** Maximum number of remembered messages. Without it, messages that contain the time would pile up. */
const MAX_REMEMBERED = 100;

/** Logs each error message only once, because the same error may recur at each probe. */
export class OnceLog {
  readonly #logger = new Logger('ClusterModule');
  readonly #said = new Set<string>();

  /** @param error is logged in full. Errors with the same message count as the same error. */
  error(what: string, error?: unknown): void {
    const key = error === undefined ? what : `${what}: ${messageOf(error)}`;
    if (this.#said.has(key)) return;
    if (this.#said.size >= MAX_REMEMBERED) this.#said.delete(this.#said.values().next().value!);
    this.#said.add(key);
    const text = error === undefined ? what : `${what}: ${inspected(error)}`;
    this.#logger.error(oneLine(text));
  }
}
