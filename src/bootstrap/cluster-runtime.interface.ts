import type { INestApplication, INestApplicationContext } from '@nestjs/common';
import type { ClusterEventName, ClusterEventMap } from '../contract/events/index.js';
import type {
  ClusterSnapshot,
  ReloadResult,
  RestartResult,
  WorkerIdentity,
} from '../contract/snapshot/index.js';

/**
 * Builds the app: everything but `listen()`, which is `bootstrap()`'s. Called
 * in workers and in a standalone process, never in the primary. The app may be
 * what any function of `NestFactory` makes.
 */
export type CreateApp<App extends INestApplicationContext = INestApplication> = (
  context: CreateAppContext,
) => Promise<App> | App;

/** A module that exports a function that builds the app, as `createApp` or as its default. */
export type CreateAppModule =
  | { readonly createApp: CreateApp<INestApplicationContext> }
  | { readonly default: CreateApp<INestApplicationContext> };

/**
 * The result of the function for `bootstrap()`: an app, or a module as in `() =>
 * import('./app.js')`.
 */
export type AppSource = INestApplicationContext | CreateAppModule;

/** The app that comes of it. */
export type AppOf<S extends AppSource> = S extends INestApplicationContext
  ? S
  : S extends { readonly createApp: (context: CreateAppContext) => infer R }
    ? Extract<Awaited<R>, INestApplicationContext>
    : S extends { readonly default: (context: CreateAppContext) => infer R }
      ? Extract<Awaited<R>, INestApplicationContext>
      : never;

/** The argument of a function that builds the app. */
export interface CreateAppContext {
  /**
   * The worker that the app is for. With `workers: 0` it is slot 0, as `ClusterService.identity`
   * is.
   */
  readonly worker: WorkerIdentity;
}

/** The result of `bootstrap()`, by the role of the process. */
export type ClusterRuntime<App extends INestApplicationContext = INestApplication> =
  PrimaryRuntime | WorkerRuntime | StandaloneRuntime<App> | BystanderRuntime;

/** The first process: forks and supervises, serves no request. */
export interface PrimaryRuntime {
  readonly role: 'primary';
  /** The cluster as it is now. */
  snapshot(): ClusterSnapshot;
  /**
   * Replaces every worker by one of the program as it is on disk now, one slot at a time and
   * without a gap: the new one is ready, has lived for `reload.canaryMs` and is healthy before the
   * old one drains. If a worker of the new release fails before the end, the old release serves on,
   * and the result says why. It resolves before the new release is observed (`reload.observeMs`). A
   * reload that is under way is everybody's: a second call gets its result.
   */
  reload(): Promise<ReloadResult>;
  /**
   * Changes the number of workers; no request is lost either way. Resolves once
   * the new ones are ready, or have failed, and those that are too many are gone.
   *
   * @param workers 1..256.
   * @throws ClusterConfigurationError for another number.
   */
  scale(workers: number): Promise<ClusterSnapshot>;
  /**
   * Replaces the worker of one slot without a gap, by one of the program that it runs: the new one
   * is ready before the old one drains. Resolves once the old one has left; where the new one
   * fails the old one stays, and the result says why. A restart of the slot that is under way is
   * everybody's; a reload that is under way comes first.
   *
   * @param slot 0..255.
   * @throws ClusterConfigurationError for another number.
   */
  restart(slot: number): Promise<RestartResult>;
  /** Drains every worker as SIGTERM does, then ends the process with exit code 0. */
  shutdown(): Promise<void>;
  /** Calls `listener` on each event of that name. An error that it throws is logged. */
  on<N extends ClusterEventName>(name: N, listener: (event: ClusterEventMap[N]) => void): this;
  off<N extends ClusterEventName>(name: N, listener: (event: ClusterEventMap[N]) => void): this;
}

/** A forked process that runs the app. */
export interface WorkerRuntime {
  readonly role: 'worker';
  readonly identity: WorkerIdentity;
}

/** `workers: 0`: the app in this process, with the same endpoints and the same drain. */
export interface StandaloneRuntime<App extends INestApplicationContext = INestApplication> {
  readonly role: 'standalone';
  readonly app: App;
  /** The address of the app; `null` without an HTTP server. */
  readonly url: App extends INestApplication ? string : string | null;
  /** Drains and closes the app; the process goes on. */
  shutdown(): Promise<void>;
}

/** A thread, or a process that a worker started: nothing was done here. */
export interface BystanderRuntime {
  readonly role: 'bystander';
}
