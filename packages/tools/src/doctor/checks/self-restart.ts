import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Check } from '../../../observe/findings/finding.js';

const SOURCE = /\.[cm]?[jt]s$/;

/** Without a signal it is SIGTERM. A handler that passes on its own signal has it in a variable, and is not found. */
const KILLS_ITSELF =
  /^(?!\s*(?:\/\/|\*)).*process\.kill\(process\.pid(?:\)|, ?['"]SIG(?:TERM|INT|HUP)['"])/;

/** Reads the sources in the main file's directory and below, because the call may be in no class. */
export const selfRestart: Check = {
  name: 'self-restart',
  remedy: 'call ClusterService.reload(), which replaces every worker',
  look: (_app, { main }) =>
    sourcesBelow(dirname(main)).flatMap((file) =>
      readFileSync(file, 'utf8')
        .split('\n')
        .flatMap((line, i) => (KILLS_ITSELF.test(line) ? `${file}:${i + 1}` : []))
        .map((where) => ({
          where,
          problem:
            'only the worker that runs this line is replaced, and the others stay as they are',
        })),
    ),
};

function sourcesBelow(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : sourcesBelow(path);
    return entry.isFile() && SOURCE.test(entry.name) ? path : [];
  });
}
