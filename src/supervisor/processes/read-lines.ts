import type { Readable } from 'node:stream';

/** The maximum length of a line from a worker; longer lines are dropped. A watchdog's report has only some kilobytes. */
const MAX_LINE_LENGTH = 256 * 1024;

/**
 * Reads messages from a pipe, one JSON value per line. Drops lines that are not JSON or too long.
 * Does not validate the messages.
 */
export function readLines(pipe: Readable, tell: (message: unknown) => void): void {
  let rest = '';
  pipe.setEncoding('utf8');
  pipe.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop()!;
    if (rest.length > MAX_LINE_LENGTH) rest = '';
    for (const line of lines) {
      const message = parseLine(line);
      if (message !== undefined) tell(message);
    }
  });
  // The pipe fails when the other process ends. The end is noticed elsewhere.
  pipe.on('error', () => {});
}

/** @returns `undefined` for a text that is not JSON, and for `null`. */
function parseLine(text: string): unknown {
  try {
    return (JSON.parse(text) as unknown) ?? undefined;
  } catch {
    return undefined;
  }
}
