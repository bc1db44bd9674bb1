import type { Readable } from 'node:stream';

/** The maximum length of a line; longer lines are dropped. A watchdog's report has only some kilobytes. */
const MAX_LINE_LENGTH = 256 * 1024;

/**
 * Reads the reports of a worker's watchdog from its pipe, one JSON object per line. Lines that are
 * not JSON are dropped. The switchboard validates the objects.
 */
export function readReports(pipe: Readable, report: (message: unknown) => void): void {
  let rest = '';
  pipe.setEncoding('utf8');
  pipe.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop()!;
    if (rest.length > MAX_LINE_LENGTH) rest = '';
    for (const line of lines) {
      const message = parse(line);
      if (message !== undefined) report(message);
    }
  });
  // The pipe fails when the worker ends. The exit is reported elsewhere.
  pipe.on('error', () => {});
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
