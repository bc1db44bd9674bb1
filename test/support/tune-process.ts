import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { NODE, PROGRAMS } from './cluster-process.js';
import { MAIN } from './command-line.js';
import { childrenOf } from './processes.js';
import { plainEnvironment } from './run-command.js';

const root = join(import.meta.dirname, '../..');

/** The command that starts the sample app. */
export const SAMPLE_APP = [NODE, PROGRAMS.sample] as const;

/** `nestjs-cluster tune`, its output and its processes. */
export class TuneProcess {
  readonly child: ChildProcess;
  stdout = '';
  stderr = '';
  /** Resolves with its exit code, when all its output is there. */
  readonly exit: Promise<number | null>;

  constructor(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    this.child = spawn(NODE, [MAIN, 'tune', ...args], {
      cwd: root,
      env: { ...plainEnvironment(), ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.child.stdout!.setEncoding('utf8').on('data', (text: string) => (this.stdout += text));
    this.child.stderr!.setEncoding('utf8').on('data', (text: string) => (this.stderr += text));
    this.exit = new Promise((resolve) => this.child.once('close', resolve));
  }

  /** The last line of the output, which is the recommendation. */
  get lastLine(): string | undefined {
    return this.stdout.trimEnd().split('\n').at(-1);
  }

  /** All its child processes, their child processes, and so on. */
  get descendants(): number[] {
    const below = (pid: number): number[] =>
      childrenOf(pid).flatMap((child) => [child, ...below(child)]);
    return below(this.child.pid!);
  }
}
