import { modulesOf } from '../life/nest-container.js';

/** The used part of a BullMQ `Worker`. The package itself is not loaded: it belongs to the app. */
interface QueueWorker {
  /** Takes no more jobs. Resolves when those that it has in hand are done. */
  pause(): Promise<unknown>;
}

/** Methods that together only a `Worker` has: a `Queue` would pause for everybody. */
const METHODS = ['pause', 'resume', 'isPaused', 'isRunning', 'run', 'close'] as const;

/**
 * The workers of BullMQ queues among an app's providers, or in a field of one,
 * as in the `WorkerHost` of @nestjs/bullmq, or in a list there. They would be closed by a shutdown
 * hook, when others have closed the database that a job in hand needs.
 */
export class QueueWorkers {
  #pausing = 0;

  constructor(private readonly app: unknown) {}

  /** No more jobs. */
  pause(): void {
    for (const worker of workersIn(this.app)) void this.#pause(worker);
  }

  /** Jobs are in hand. */
  get busy(): boolean {
    return this.#pausing > 0;
  }

  async #pause(worker: QueueWorker): Promise<void> {
    this.#pausing += 1;
    try {
      await worker.pause();
    } catch {
      // its shutdown hook will tell
    } finally {
      this.#pausing -= 1;
    }
  }
}

function workersIn(app: unknown): ReadonlySet<QueueWorker> {
  const workers = new Set<QueueWorker>();
  for (const { providers } of modulesOf(app)) {
    for (const { instance } of providers?.values() ?? []) {
      for (const each of [instance, ...fieldsOf(instance).flat()]) {
        if (isQueueWorker(each)) workers.add(each);
      }
    }
  }
  return workers;
}

/** The values that an object has itself; a getter is not called. */
function fieldsOf(instance: unknown): unknown[] {
  if (typeof instance !== 'object' || instance === null) return [];
  return Object.values(Object.getOwnPropertyDescriptors(instance)).map(
    ({ value }): unknown => value,
  );
}

function isQueueWorker(value: unknown): value is QueueWorker {
  if (typeof value !== 'object' || value === null) return false;
  return METHODS.every(
    (method) => method in value && typeof Reflect.get(value, method) === 'function',
  );
}
