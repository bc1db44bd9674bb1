import { spawn } from 'node:child_process';

/** How a command ended, and what it said. */
export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandOptions {
  readonly cwd: string;
  /** The command's whole environment: nothing from this process's environment is added. */
  readonly env: NodeJS.ProcessEnv;
  /** The command's standard input. */
  readonly input?: string;
  /** The command is ended after this time. Default 90 000. */
  readonly timeoutMs?: number;
}

/** Runs a program to its end; whether it ended well is the caller's question. */
export async function runCommand(
  command: string,
  args: readonly string[],
  { cwd, env, input = '', timeoutMs = 90_000 }: CommandOptions,
): Promise<CommandResult> {
  const child = spawn(command, args, {
    cwd,
    env,
    stdio: ['pipe', 'pipe', 'pipe'],
    timeout: timeoutMs,
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (stdout += chunk));
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (stderr += chunk));
  // It need not read it.
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  return { code, stdout, stderr };
}

/** For npm, which hands its own project down to what it starts: here another one is meant. */
export function npmEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/^npm_(package|lifecycle)_|^npm_config_(local_prefix|workspaces?$)/i.test(name),
    ),
  );
}

/** For programs under test: what a shell gives, none of what vitest and npm set. */
export function plainEnvironment(): NodeJS.ProcessEnv {
  return { PATH: process.env['PATH'], HOME: process.env['HOME'] };
}
