#!/usr/bin/env node
import { runCommandLine } from './program.js';

// A reader that leaves early (head, a pager) is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  process.stderr.write(`error: cannot write the output: ${error.message}\n`);
  process.exit(1);
});

await runCommandLine(process.argv.slice(2));
