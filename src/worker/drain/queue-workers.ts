/** The used part of a BullMQ `Worker`. Declared here, because BullMQ is a dependency of the app. */
interface QueueWorker {
  /** Takes no more jobs. Resolves when the jobs that run are done. */
  pause(): Promise<unknown>;
}

/** The used part of a Nest app. Any property may be missing. */
interface NestInternals {
  readonly container?: { getModules?(): ReadonlyMap<string, NestModule> };
}

interface NestModule {
  readonly providers?: ReadonlyMap<unknown, { readonly instance?: unknown }>;
}

/** Only a `Worker` has all of these methods. A `Queue` must not match: its pause() is global. */
const METHODS = ['pause', 'resume', 'isPaused', 'isRunning', 'run', 'close'] as const;

/**
 * The BullMQ workers of an app. Finds providers that are workers, and workers in a provider's fields
 * or lists, as in the `WorkerHost` of @nestjs/bullmq. Without this class, only a shutdown hook would
 * close the workers, and other hooks may have closed the database that a running job needs.
 */
export class QueueWorkers {
  #pausing = 0;

  constructor(private readonly app: unknown) {}

  pause(): void {
    for (const worker of workersIn(this.app)) void this.#pause(worker);
  }

  get busy(): boolean {
    return this.#pausing > 0;
  }

  async #pause(worker: QueueWorker): Promise<void> {
    this.#pausing += 1;
    try {
      await worker.pause();
    } catch {
      // ignored: the shutdown hook that closes the worker will report the error
    } finally {
      this.#pausing -= 1;
    }
  }
}

function workersIn(app: unknown): ReadonlySet<QueueWorker> {
  const workers = new Set<QueueWorker>();
  const modules = (app as NestInternals).container?.getModules?.().values() ?? [];
  for (const { providers } of modules) {
    for (const { instance } of providers?.values() ?? []) {
      for (const each of [instance, ...fieldsOf(instance).flat()]) {
        if (isQueueWorker(each)) workers.add(each);
      }
    }
  }
  return workers;
}

/** The values of an object's own fields. Calls no getters. */
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
