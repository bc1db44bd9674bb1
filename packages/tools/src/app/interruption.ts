import { constants } from 'node:os';
import { ToolError } from '../output.js';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Runs a command that starts an app. The first signal to this process aborts the command, which
 * then shuts the app down. The second signal ends this process, which kills the app.
 */
export async function interruptible(run: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const controller = new AbortController();
  const receive = (signal: NodeJS.Signals): void => {
    process.exitCode = 128 + constants.signals[signal]; // a shell's exit code for a signal
    if (controller.signal.aborted) process.exit();
    process.stderr.write(`${signal}: stopping the app\n`);
    controller.abort();
  };
  for (const signal of SIGNALS) process.on(signal, receive);
  try {
    await run(controller.signal);
  } catch (error) {
    if (!controller.signal.aborted || error instanceof ToolError) throw error;
  } finally {
    for (const signal of SIGNALS) process.off(signal, receive);
  }
}
