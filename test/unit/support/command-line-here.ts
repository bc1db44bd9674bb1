import { vi } from 'vitest';
import { runCommandLine } from '../../../src/cli/program.js';
import type { CommandResult } from '../../support/run-command.js';

/** `process.exit()` throws this in the tests, so that no code after the call runs. */
class Exit extends Error {
  constructor(readonly code: number) {
    super(`exit ${code}`);
  }
}

/** Runs `nestjs-cluster` with these arguments in this process. Not twice at a time. */
export async function commandLine(...args: string[]): Promise<CommandResult> {
  const written = { stdout: '', stderr: '' };
  const spies = [
    ...(['stdout', 'stderr'] as const).map((name) =>
      vi.spyOn(process[name], 'write').mockImplementation((chunk) => {
        written[name] += String(chunk);
        return true;
      }),
    ),
    vi.spyOn(process, 'exit').mockImplementation((code) => {
      throw new Exit(Number(code ?? 0));
    }),
  ];
  try {
    await runCommandLine(args);
    return { code: 0, ...written };
  } catch (error) {
    if (!(error instanceof Exit)) throw error;
    return { code: error.code, ...written };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}

/** @returns the output of a command. Throws if it fails or warns. */
export async function printed(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await commandLine(...args);
  if (code !== 0 || stderr !== '') throw new Error(`exit code ${code}: ${stderr}`);
  return stdout;
}
