import type { Readable } from 'node:stream';

/** A report has some kilobytes. A longer line did not come from our watchdog. */
const MAX_LINE_LENGTH = 256 * 1024;

/**
 * Reads what the watchdog of a worker writes on its pipe, one JSON object a
 * line. It drops lines that are not JSON. The switchboard checks the rest.
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
  // The worker is gone: its exit tells.
  pipe.on('error', () => {});
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
