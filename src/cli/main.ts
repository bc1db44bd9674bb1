#!/usr/bin/env node
import { runCommandLine } from './program.js';

// If the reader of the output exits early (head, a pager), the command still runs to completion, so
// that its exit code is correct.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') return;
  process.stderr.write(`error: cannot write the output: ${error.message}\n`);
  process.exitCode = 1;
});
process.stderr.on('error', () => {}); // there is nowhere left to report the error

await runCommandLine(process.argv.slice(2));
