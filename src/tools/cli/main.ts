#!/usr/bin/env node
import { runCommandLine } from './program.js';

// A reader that leaves early (head, a pager) does not end the command, so the exit code is right.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') return;
  process.stderr.write(`error: cannot write the output: ${error.message}\n`);
  process.exitCode = 1;
});
process.stderr.on('error', () => {}); // nobody is left to be told

await runCommandLine(process.argv.slice(2));
