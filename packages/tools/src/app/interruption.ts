import { constants } from 'node:os';
import { ToolError } from '../output.js';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** The processes that a command has started, and the signal that tells the command to end them. */
export interface Interruption {
  /** The running processes. They are killed when this process exits, even after an error. */
  readonly started: Set<{ kill(): void }>;
  readonly signal: AbortSignal;
}

/**
 * Runs a command that starts processes. The first signal to this process aborts the command, which
 * then ends its processes in order. The second signal kills those processes.
 */
export async function interruptible(
  run: (interruption: Interruption) => Promise<void>,
): Promise<void> {
  const controller = new AbortController();
  const started: Interruption['started'] = new Set();
  let exitCode = 0;
  const receive = (signal: NodeJS.Signals): void => {
    exitCode = 128 + constants.signals[signal]; // a shell's exit code for a signal
    if (controller.signal.aborted) process.exit(exitCode);
    process.stderr.write(`${signal}: ending the app\n`);
    controller.abort();
  };
  const exit = (): void => {
    for (const each of started) each.kill();
  };
  for (const signal of SIGNALS) process.on(signal, receive);
  process.on('exit', exit);
  try {
    await run({ started, signal: controller.signal });
  } catch (error) {
    if (!controller.signal.aborted || error instanceof ToolError) throw error;
    process.exitCode = exitCode;
  } finally {
    for (const signal of SIGNALS) process.off(signal, receive);
    process.off('exit', exit);
  }
}
