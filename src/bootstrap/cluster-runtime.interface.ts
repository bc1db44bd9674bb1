import type { INestApplication } from '@nestjs/common';
import type { ClusterEventName, ClusterEvents } from '../events/index.js';
import type { ClusterSnapshot, WorkerIdentity } from '../snapshot/index.js';

/**
 * Builds the app: everything but `listen()`, which is `bootstrap()`'s. Called
 * in workers and in a standalone process, never in the primary.
 */
export type CreateApp = () => Promise<INestApplication> | INestApplication;

/** What `bootstrap()` resolves to, by the role of the process. */
export type ClusterRuntime = PrimaryRuntime | WorkerRuntime | StandaloneRuntime | BystanderRuntime;

/** The first process: forks and supervises, serves no request. */
export interface PrimaryRuntime {
  readonly role: 'primary';
  /** The cluster as it is now. */
  snapshot(): ClusterSnapshot;
  /** Drains every worker as SIGTERM does, then ends the process with exit code 0. */
  shutdown(): Promise<void>;
  /** Calls `listener` on each event of that name. Whatever it throws is logged. */
  on<N extends ClusterEventName>(name: N, listener: (event: ClusterEvents[N]) => void): this;
  off<N extends ClusterEventName>(name: N, listener: (event: ClusterEvents[N]) => void): this;
}

/** A forked process that runs the app. */
export interface WorkerRuntime {
  readonly role: 'worker';
  readonly identity: WorkerIdentity;
}

/** `workers: 0`: the app in this process, with the same endpoints and the same drain. */
export interface StandaloneRuntime {
  readonly role: 'standalone';
  readonly app: INestApplication;
  /** Where the app can be reached. */
  readonly url: string;
  /** Drains and closes the app; the process goes on. */
  shutdown(): Promise<void>;
}

/** A thread, or a process that a worker started: nothing was done here. */
export interface BystanderRuntime {
  readonly role: 'bystander';
}
