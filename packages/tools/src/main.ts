#!/usr/bin/env node
import { runCommandLine } from './program.js';

await runCommandLine(process.argv.slice(2));
