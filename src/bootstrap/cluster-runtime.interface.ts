import type { INestApplication, INestApplicationContext } from '@nestjs/common';
import type { ClusterEventName, ClusterEventMap } from '../contract/log/events.js';
import type {
  ClusterSnapshot,
  ReloadResult,
  RestartResult,
  WorkerIdentity,
} from '../contract/snapshot/types.js';

/**
 * Creates the app. Must not call `listen()`, because `bootstrap()` calls it. Runs in workers and in a
 * standalone process, never in the primary. Any function of `NestFactory` can create the app.
 */
export type CreateApp<App extends INestApplicationContext = INestApplication> = (
  context: CreateAppContext,
) => Promise<App> | App;

/** A module whose export `createApp` or default export is a function that creates the app. */
export type CreateAppModule =
  | { readonly createApp: CreateApp<INestApplicationContext> }
  | { readonly default: CreateApp<INestApplicationContext> };

/**
 * A Nest app, or a module that creates one: the result of the function passed to `bootstrap()`.
 */
export type AppSource = INestApplicationContext | CreateAppModule;

/** The function passed to `bootstrap()`. It may give one of several apps. */
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
  /** The worker that the app is for. See `ClusterService.identity`. Slot 0 with `workers: 0`. */
  readonly worker: WorkerIdentity;
}

/** The result of `bootstrap()`, by the role of the process. */
export type ClusterRuntime<App extends INestApplicationContext = INestApplication> =
  PrimaryRuntime | WorkerRuntime | StandaloneRuntime<App> | BystanderRuntime;

/** The first process. It forks and supervises the workers, and serves no requests. */
export interface PrimaryRuntime {
  readonly role: 'primary';
  /** The current state of the cluster. */
  snapshot(): ClusterSnapshot;
  /**
   * Replaces every worker by a worker of the release that is on disk now, one slot at a time and
   * without a gap. The old worker drains only after the new worker is ready, has lived for
   * a second and is healthy. If a new worker fails before that, the old release serves on,
   * and the result says why. Resolves before the new release is observed (`reload.observeMs`).
   * During a reload, a second call returns the result of that reload.
   */
  reload(): Promise<ReloadResult>;
  /**
   * Changes the number of workers. No request is lost. Resolves when the new workers are ready or
   * have failed, and when the surplus workers have ended.
   *
   * @param workers 1..256.
   * @throws ClusterConfigurationError for another number.
   */
  scale(workers: number): Promise<ClusterSnapshot>;
  /**
   * Replaces the worker of one slot by a new worker of the same release, without a gap: the old worker
   * drains only after the new worker is ready. Resolves when the old worker has ended. If the new
   * worker fails, the old worker stays, and the result says why. During a restart of the slot, a second
   * call returns the result of that restart. Slots are replaced one at a time, so a restart may wait.
   *
   * @param slot 0..255.
   * @throws ClusterConfigurationError for another number.
   */
  restart(slot: number): Promise<RestartResult>;
  /** Drains every worker as SIGTERM does, then ends the process with exit code 0. */
  shutdown(): Promise<void>;
  /** Calls `listener` for each event of that name. Errors that `listener` throws are logged. */
  on<N extends ClusterEventName>(name: N, listener: (event: ClusterEventMap[N]) => void): this;
  off<N extends ClusterEventName>(name: N, listener: (event: ClusterEventMap[N]) => void): this;
}

/** A forked process that runs the app. */
export interface WorkerRuntime {
  readonly role: 'worker';
  readonly identity: WorkerIdentity;
}

/** With `workers: 0`, the app runs in this process, with the same endpoints and the same drain. */
export interface StandaloneRuntime<App extends INestApplicationContext = INestApplication> {
  readonly role: 'standalone';
  readonly app: App;
  /** The URL of the app, or `null` without an HTTP server. */
  readonly url: App extends INestApplication ? string : string | null;
  /** Drains and closes the app. The process does not end. */
  shutdown(): Promise<void>;
}

/** A thread, or a process that a worker started. `bootstrap()` did nothing here. */
export interface BystanderRuntime {
  readonly role: 'bystander';
}
