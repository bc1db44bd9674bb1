import { ExaminedWorker, type Outcome, type Settings } from './worker.js';

/** The task of this process. The command passes it as the only argument, in JSON. */
export interface HostTask {
  readonly script: string;
  readonly settings: Settings;
}

/**
 * This process runs between the command and the worker. It leads its own process group, so that the
 * command can end everything that the app starts.
 */
const { script, settings } = JSON.parse(process.argv[2]!) as HostTask;
const worker = new ExaminedWorker(script, settings);

async function end(outcome?: Outcome): Promise<never> {
  await worker.end();
  if (outcome !== undefined && process.connected) {
    await new Promise<void>((resolve) => void process.send!(outcome, () => resolve()));
  }
  process.exit(0);
}

// The command sends SIGTERM after Ctrl-C. 'disconnect' comes if the command has died.
process.once('SIGTERM', () => void end());
process.once('disconnect', () => void end());
await end(await worker.outcome());
