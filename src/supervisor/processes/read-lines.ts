import type { Readable } from 'node:stream';

/** The maximum length of a line from a worker; longer lines are dropped. A watchdog's report has only some kilobytes. */
const MAX_LINE_LENGTH = 256 * 1024;

/**
 * Reads messages from a pipe, one JSON value per line. Drops lines that are not JSON or longer than
 * `maxLength`. Does not validate the messages.
 */
export function readLines<Message>(
  pipe: Readable,
  tell: (message: Message) => void,
  maxLength = MAX_LINE_LENGTH,
): void {
  let rest = '';
  pipe.setEncoding('utf8');
  pipe.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop()!;
    if (rest.length > maxLength) rest = '';
    for (const line of lines) {
      const message = parseLine<Message>(line);
      if (message !== undefined) tell(message);
    }
  });
  // The pipe fails when the other process ends. The end is noticed elsewhere.
  pipe.on('error', () => {});
}

/** @returns `undefined` for a text that is not JSON, and for `null`. */
export function parseLine<Message>(text: string): Message | undefined {
  try {
    return (JSON.parse(text) as Message | null) ?? undefined;
  } catch {
    return undefined;
  }
}
