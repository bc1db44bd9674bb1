import { Logger } from '@nestjs/common';
import { inspect } from 'node:util';
import { oneLine } from '../../contract/errors/index.js';

/** The limit of remembered messages: a message with the time of day would be new each time. */
const MAX_REMEMBERED = 100;

/** Logs what goes wrong again and again, at each probe, once for each message that it has. */
export class OnceLog {
  readonly #logger = new Logger('ClusterModule');
  readonly #said = new Set<string>();

  /** @param error logged whole; it is its message that tells it from another. */
  error(what: string, error?: unknown): void {
    const key = error === undefined ? what : `${what}: ${show(() => messageOf(error))}`;
    if (this.#said.has(key)) return;
    if (this.#said.size >= MAX_REMEMBERED) this.#said.delete(this.#said.values().next().value!);
    this.#said.add(key);
    const text = error === undefined ? what : `${what}: ${show(() => inspect(error))}`;
    this.#logger.error(oneLine(text));
  }
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return inspect(error);
  const { name, message, code = '' } = error as NodeJS.ErrnoException;
  return `${name}: ${message} ${code}`;
}

/** Anything can be thrown, also what has no text. */
function show(text: () => string): string {
  try {
    return text();
  } catch {
    return 'a value that cannot be shown as text';
  }
}
