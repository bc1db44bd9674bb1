import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { basename, delimiter, isAbsolute, join } from 'node:path';
import type { ProgramStart } from '../../supervisor/processes/release.js';
import { type Handover, HANDOVER_VARIABLE, PIPE_DESCRIPTOR } from './handover.js';

/** The facts about this process from which another primary is started. */
export interface StartedBy {
  /** As it was typed: `node`, or a path that may be a symlink. */
  readonly argv0: string;
  readonly execPath: string;
  readonly path: string | undefined;
}

/**
 * Starts another primary: the Node, the program and the environment with which this process was
 * started, all looked up again.
 *
 * @param passed the sockets that it gets, from the descriptor after the pipe on.
 */
export function startPrimary(
  { script, cwd, pwd }: ProgramStart,
  handover: Handover,
  passed: readonly number[],
): ChildProcess {
  const { execArgv, argv, argv0, execPath } = process;
  const initial = initialEnvironment();
  const env = { ...initial, ...(pwd && { PWD: pwd }) };
  return spawn(
    findNode({ argv0, execPath, path: initial['PATH'] }),
    [...execArgv, script, ...argv.slice(2)],
    {
      cwd,
      env: { ...env, [HANDOVER_VARIABLE]: JSON.stringify(handover) },
      argv0,
      stdio: ['inherit', 'inherit', 'inherit', 'pipe', ...passed],
    },
  );
}

/** The descriptor that a socket gets in the new primary. @param index its place among the sockets. */
export function descriptorOf(index: number): number {
  return PIPE_DESCRIPTOR + 1 + index;
}

/**
 * The program of Node by the name with which this process was started: a path, which may be a
 * symlink to another version by now, or a name that is looked up in PATH. Otherwise the program
 * that this process runs, whose file may have been replaced.
 */
export function findNode({ argv0, execPath, path = '' }: StartedBy): string {
  if (isAbsolute(argv0)) return existsSync(argv0) ? argv0 : execPath;
  // Another name says nothing, because a program can give itself any name.
  if (argv0 !== basename(execPath)) return execPath;
  const candidates = path.split(delimiter).filter(isAbsolute);
  return candidates.map((directory) => join(directory, argv0)).find(isExecutable) ?? execPath;
}

/** The environment at the start, so that the new primary reads its `.env` files as a first start does. */
function initialEnvironment(): NodeJS.ProcessEnv {
  try {
    const lines = readFileSync('/proc/self/environ', 'utf8').split('\0');
    const pairs = lines.map((line) => /^([^=]+)=(.*)$/s.exec(line)).filter((pair) => pair !== null);
    return Object.fromEntries(pairs.map(([, name, value]) => [name!, value!]));
  } catch {
    return process.env; // not Linux
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
