#!/usr/bin/env node
import { oneLine } from './output.js';
import { createProgram } from './program.js';

try {
  await createProgram().parseAsync();
} catch (error) {
  const { exitCode, message } = error as { exitCode?: unknown; message: string };
  if (typeof exitCode !== 'number') throw error; // a defect of this program
  process.stderr.write(`error: ${message.split('\n').map(oneLine).join('\n')}\n`);
  process.exit(exitCode);
}
