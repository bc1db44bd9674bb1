import type { INestApplication, INestApplicationContext } from '@nestjs/common';
import type { ClusterEventName, ClusterEventMap } from '../contract/log/events.js';
import type {
  ClusterSnapshot,
  ReloadResult,
  RestartResult,
  WorkerIdentity,
} from '../contract/snapshot/types.js';

/**
 * Creates the app with any `NestFactory` function. Must not call `listen()`, because `bootstrap()`
 * calls it. Runs in workers and with `workers: 0`, never in the primary.
 */
export type CreateApp<App extends INestApplicationContext = INestApplication> = (
  context: CreateAppContext,
) => Promise<App> | App;

/** A module whose `createApp` export or default export creates the app. */
export type CreateAppModule =
  | { readonly createApp: CreateApp<INestApplicationContext> }
  | { readonly default: CreateApp<INestApplicationContext> };

/**
 * The result of the function passed to `bootstrap()`: a Nest app, or a module that creates it.
 */
export type AppSource = INestApplicationContext | CreateAppModule;

/** The function passed to `bootstrap()`. It may return one of several apps. */
export type AppFactory = (context: CreateAppContext) => Promise<AppSource> | AppSource;

/** The type of the app that an {@link AppSource} creates. */
export type AppOf<S extends AppSource> = S extends INestApplicationContext
  ? S
  : S extends { readonly createApp: (context: CreateAppContext) => infer R }
    ? Extract<Awaited<R>, INestApplicationContext>
    : S extends { readonly default: (context: CreateAppContext) => infer R }
      ? Extract<Awaited<R>, INestApplicationContext>
      : never;

/** The argument of a function that creates the app. */
export interface CreateAppContext {
  /** The worker that creates the app. See `ClusterService.identity`. Slot 0 with `workers: 0`. */
  readonly worker: WorkerIdentity;
}

/** The result of `bootstrap()`. It depends on the role of the process. */
export type ClusterRuntime<App extends INestApplicationContext = INestApplication> =
  PrimaryRuntime | WorkerRuntime | StandaloneRuntime<App> | BystanderRuntime;

/** The first process. It forks and supervises the workers, and serves no requests. */
export interface PrimaryRuntime {
  readonly role: 'primary';
  /** The current state of the cluster. */
  snapshot(): ClusterSnapshot;
  /**
   * Replaces all workers with workers of the release that is now on disk, without downtime: a quarter
   * of the slots at a time, rounded up. An old worker drains only after its replacement has been ready
   * for a second and is healthy. If a new worker fails before that, the old release keeps serving, and
   * the result contains the reason. Resolves before the new release is observed (`reload.observeMs`).
   * During a reload, a second call returns the result of that reload.
   */
  reload(): Promise<ReloadResult>;
  /**
   * Changes the number of workers without losing requests. Resolves when the new workers are ready or
   * have failed, and the surplus workers have exited.
   *
   * @param workers 1..256.
   * @throws ClusterConfigurationError for a number out of this range.
   */
  scale(workers: number): Promise<ClusterSnapshot>;
  /**
   * Replaces one slot's worker with a new worker of the same release, without downtime: the old worker
   * drains only after the new worker is ready. Resolves when the old worker has exited. If the new
   * worker fails, the old worker stays, and the result contains the reason. During a restart of the
   * slot, a second call returns the result of that restart. Restarts of several slots run one by one.
   *
   * @param slot 0..255.
   * @throws ClusterConfigurationError for a number out of this range.
   */
  restart(slot: number): Promise<RestartResult>;
  /** Drains all workers, as SIGTERM does, then exits the process with code 0. */
  shutdown(): Promise<void>;
  /** Calls `listener` for each event with this name. Errors thrown by `listener` are logged. */
  on<N extends ClusterEventName>(name: N, listener: (event: ClusterEventMap[N]) => void): this;
  off<N extends ClusterEventName>(name: N, listener: (event: ClusterEventMap[N]) => void): this;
}

/** A forked process that runs the app. */
export interface WorkerRuntime {
  readonly role: 'worker';
  readonly identity: WorkerIdentity;
}

/** With `workers: 0`, the app runs in this process, with the same endpoints and drain as in a worker. */
export interface StandaloneRuntime<App extends INestApplicationContext = INestApplication> {
  readonly role: 'standalone';
  readonly app: App;
  /** The URL of the app, or `null` without an HTTP server. */
  readonly url: App extends INestApplication ? string : string | null;
  /** Drains and closes the app. Does not exit the process. */
  shutdown(): Promise<void>;
}

/** A thread, or a process that a worker has started. `bootstrap()` has done nothing here. */
export interface BystanderRuntime {
  readonly role: 'bystander';
}
