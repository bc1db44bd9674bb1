import { ExaminedWorker, type Outcome, type WorkerTask } from './examined-worker.js';

/**
 * This process runs between the command and the worker. It leads its own process group, so that the
 * command can end everything that the app starts. Its only argument is a {@link WorkerTask} in JSON.
 */
const worker = new ExaminedWorker(JSON.parse(process.argv[2]!) as WorkerTask);

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
