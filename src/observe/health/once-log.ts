import { Logger } from '@nestjs/common';
import { inspected, oneLine } from '../../contract/errors/index.js';
import { reportError } from '../../contract/ipc/index.js';

/** Maximum number of remembered messages. Without it, messages that contain the time would pile up. */
const MAX_REMEMBERED = 100;

/** Logs each error message only once, because the same error may recur at each probe. */
export class OnceLog {
  readonly #logger = new Logger('ClusterModule');
  readonly #said = new Set<string>();

  /** @param error is logged in full. Errors with the same message count as the same error. */
  error(what: string, error?: unknown): void {
    const key = error === undefined ? what : `${what}: ${headOf(error)}`;
    if (this.#said.has(key)) return;
    if (this.#said.size >= MAX_REMEMBERED) this.#said.delete(this.#said.values().next().value!);
    this.#said.add(key);
    const text = error === undefined ? what : `${what}: ${inspected(error)}`;
    this.#logger.error(oneLine(text));
  }
}

/** What is the same each time: not the stack. */
function headOf(error: unknown): string {
  const { name, message, code = '' } = reportError(error);
  return `${name}: ${message} ${code}`;
}
