import { openCompileCache } from '../../contract/process/compile-cache.js';
import type { Outcome, WorkerTask } from './examined-worker.js';

/**
 * This process runs between the command and the worker. It leads its own process group, so that the
 * command can end everything that the app starts. Its only argument is a {@link WorkerTask} in JSON.
 */
const task = JSON.parse(process.argv[2]!) as WorkerTask;
if (task.compileCache) await compilePrimary();
// Loaded only here: Node caches no file that was loaded before the cache was opened.
const { ExaminedWorker } = await import('./examined-worker.js');
const worker = new ExaminedWorker(task);

/** Loads the files of a primary. Node writes the cache when this process exits. */
async function compilePrimary(): Promise<void> {
  openCompileCache(task.script);
  await import('../../bootstrap/roles/run-primary.js');
  if (!process.connected) process.exit(0); // the command has died
}

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
