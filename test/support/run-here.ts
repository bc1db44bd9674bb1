import { vi } from 'vitest';
import type { CommandResult } from './run-command.js';

/** `process.exit()` throws this in the tests, so that no code after the call runs. */
class Exit extends Error {
  constructor(readonly code: number) {
    super(`exit ${code}`);
  }
}

/** Runs a command in this process, and catches its output and its exit. Not twice at a time. */
export async function runHere(run: () => Promise<void>): Promise<CommandResult> {
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
    await run();
    return { code: 0, ...written };
  } catch (error) {
    if (!(error instanceof Exit)) throw error;
    return { code: error.code, ...written };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}
