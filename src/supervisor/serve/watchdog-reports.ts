import type { Readable } from 'node:stream';

/** A report is some kilobytes; whoever sends more without a line break is no watchdog of ours. */
const MAX_LINE_LENGTH = 256 * 1024;

/**
 * Reads what the watchdog of a worker writes on its pipe, one JSON object a
 * line. What is no JSON is dropped: the switchboard checks the rest.
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
