import { vi } from 'vitest';
import { createProgram } from '../../src/program.js';
import type { CommandResult } from '../../../../test/support/run-command.js';

/** `process.exit()` throws this, so that no code after the call runs. */
class Exit extends Error {
  constructor(readonly exitCode: number) {
    super('');
  }
}

/** Runs `nestjs-cluster-tools` in this process, as `main.ts` does. Not twice at a time. */
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
      throw new Exit(Number(code));
    }),
  ];
  try {
    await createProgram().parseAsync(args, { from: 'user' });
    return { code: 0, ...written };
  } catch (error) {
    const { exitCode, message } = error as Exit;
    if (typeof exitCode !== 'number') throw error;
    return { code: exitCode, ...written, stderr: written.stderr + message };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}
