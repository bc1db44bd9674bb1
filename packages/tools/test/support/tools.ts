import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { NODE, PROGRAMS } from '../../../../test/support/cluster-process.js';
import {
  type CommandResult,
  plainEnvironment,
  runCommand,
} from '../../../../test/support/run-command.js';

const root = join(import.meta.dirname, '../../../..');

/** The program `nestjs-cluster-tools`. */
const TOOLS = join(root, 'packages/tools/dist/main.js');

/** The command that starts the sample app. */
export const SAMPLE_APP = [NODE, PROGRAMS.sample] as const;

interface Environment {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** Runs `nestjs-cluster-tools` to its end. */
export function tools(
  args: readonly string[],
  { env = {}, cwd = root }: Environment = {},
): Promise<CommandResult> {
  return runCommand(NODE, [TOOLS, ...args], { cwd, env: { ...plainEnvironment(), ...env } });
}

/** @returns the output. Throws if the command fails or warns. */
export async function printed(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await tools(args);
  if (code !== 0 || stderr !== '') throw new Error(`exit code ${code}: ${stderr}`);
  return stdout;
}

/** Starts `nestjs-cluster-tools`, with its output as pipes. */
export function startTools(args: readonly string[], { env = {} }: Environment = {}): ChildProcess {
  const child = spawn(NODE, [TOOLS, ...args], {
    cwd: root,
    env: { ...plainEnvironment(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  child.stderr!.setEncoding('utf8');
  return child;
}
