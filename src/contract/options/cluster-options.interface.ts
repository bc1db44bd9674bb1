import type { ClusterEventListeners } from '../log/events.js';
import type { BalancingStrategy, EXPOSE } from './choices.js';
import type { WarningOptions } from './warning-options.interface.js';
import type { LogOptions } from './log-options.interface.js';

/**
 * Limits for the resident memory (RSS) of each worker, checked every second. Environment:
 * `CLUSTER_MEMORY_SOFT_LIMIT_BYTES`, `CLUSTER_MEMORY_HARD_LIMIT_BYTES`.
 */
export interface MemoryOptions {
  /** RSS in bytes above which a worker is replaced. The old worker drains once the new one is ready. Default: none. */
  softLimitBytes?: number | undefined;
  /** RSS in bytes above which a worker is killed and replaced. Default: none. */
  hardLimitBytes?: number | undefined;
}

/**
 * When healthy workers are replaced, as a remedy for slow leaks. One slot is replaced at a time.
 * Each worker's limits differ from the options by up to 10 % at random, so not all are due at once.
 */
export interface RecycleOptions {
  /** Number of responses after which a worker is replaced. Default: never. */
  maxRequests?: number | undefined;
  /** Age at which a worker is replaced, in ms. Default: never. */
  maxAgeMs?: number | undefined;
}

/** How a rolling reload tests a new release. */
export interface ReloadOptions {
  /**
   * How long a new release is observed once all workers run it, in ms. If one of its workers fails
   * in that time, the previous release comes back. Default 30 000; 0 = not observed.
   */
  observeMs?: number | undefined;
}

/**
 * How a worker, or the whole cluster, ends. Environment: `CLUSTER_SHUTDOWN_LAME_DUCK_MS`,
 * `CLUSTER_SHUTDOWN_DRAIN_TIMEOUT_MS`, `CLUSTER_SHUTDOWN_KILL_TIMEOUT_MS`.
 */
export interface ShutdownOptions {
  /**
   * Time at the beginning of a shutdown in which `/health/ready` already fails but requests are
   * still accepted, in ms. Default 0. Behind a load balancer, set it above the interval of the load
   * balancer's probes.
   */
  lameDuckMs?: number | undefined;
  /** Maximum time for requests in flight to finish, in ms. Beyond it, the requests are aborted. Default 10 000. */
  drainTimeoutMs?: number | undefined;
  /** Maximum time after the drain for Nest's shutdown hooks, in ms. Beyond it, the worker is killed. Default 2 000. */
  killTimeoutMs?: number | undefined;
}

/** The primary's own listener: `/health`, `/health/live`, `/health/ready` and `/metrics` answer even if no worker does. */
export interface AdminOptions {
  /** TCP port, 0..65535, also as text; with 0 the system chooses a port. Environment: `CLUSTER_ADMIN_PORT`. */
  port: number | string;
  /**
   * Address to listen on. Default `127.0.0.1`, which only this machine reaches. An address that
   * other machines reach, such as `0.0.0.0`, needs a `token`. Environment: `CLUSTER_ADMIN_HOST`.
   */
  host?: string | undefined;
  /**
   * The token that a request has to send as `Authorization: Bearer …`: 16 to 512 characters. With
   * `false`, everybody who reaches the listener may read; `false` is the default on a loopback
   * address. Environment: `CLUSTER_ADMIN_TOKEN`, which is not passed to workers.
   */
  token?: string | false | undefined;
}

/** The unix socket by which the command line and the dashboard control the cluster. */
export interface ControlOptions {
  /**
   * The path of the socket. Its directory must exist, and other users must not be able to change
   * this user's files in that directory. At most 107 bytes on Linux. Default: in a directory that
   * only this user can access, in `$XDG_RUNTIME_DIR` or else in the temporary directory.
   */
  path?: string | undefined;
}

/** Options of {@link bootstrap}. Every option has a default. */
export interface ClusterOptions {
  /**
   * TCP port, 0..65535, as a number or as text, such as `process.env.PORT ?? 3000`. With 0 the
   * system chooses a port. Default: `PORT` of the environment, else 3000. An app without an HTTP
   * server has no default.
   */
  port?: number | string | undefined;
  /** Address or host name to listen on. Default: all interfaces. */
  host?: string | undefined;
  /** Unix socket path to listen on instead of a port. At most 107 bytes on Linux. */
  path?: string | undefined;
  /**
   * Number of workers, 0..256. `'auto'` (default) is the number of cores this process may use (CPU
   * affinity and cgroup quota), or fewer if its memory limit has no room for that many workers. 0
   * runs the app in this process, without a cluster. Environment: `CLUSTER_WORKERS`, else
   * `WEB_CONCURRENCY`.
   */
  workers?: number | 'auto' | undefined;
  /** How connections reach the workers. Default `'shared'`. Environment: `CLUSTER_BALANCING`. */
  balancing?: BalancingStrategy | undefined;
  /**
   * Whether workers with more than their share of the load ask some of their clients to connect
   * again, by `Connection: close` or GOAWAY. Checked once a second. Default true.
   */
  rebalance?: boolean | undefined;
  /** Maximum time for a worker to become ready, in ms. A slower worker has failed. Default 30 000. */
  readyTimeoutMs?: number | undefined;
  /**
   * Maximum time in which a worker may answer nothing, in ms, at least 3 000. A worker that takes
   * longer is hung: it is killed and replaced. Default 10 000. `false`: no worker is killed for it.
   */
  hangTimeoutMs?: number | false | undefined;
  /**
   * A thread in each worker that reports what blocks the worker's event loop. It also ends the
   * worker if the primary is gone while the event loop is blocked. `false` starts no watchdog, and
   * saves its memory. Default `true`.
   */
  watchdog?: boolean | undefined;
  /** See {@link MemoryOptions}. */
  memory?: MemoryOptions | undefined;
  /** See {@link RecycleOptions}. */
  recycle?: RecycleOptions | undefined;
  /** See {@link ReloadOptions}. */
  reload?: ReloadOptions | undefined;
  /** See {@link ShutdownOptions}. */
  shutdown?: ShutdownOptions | undefined;
  /** See {@link AdminOptions}. Default: no admin listener, unless `CLUSTER_ADMIN_PORT` is set. */
  admin?: AdminOptions | undefined;
  /**
   * The listeners that show the details of `/health`, and `/metrics`. `'app'`, the default: the port
   * of the app and the admin listener. `'admin'`: only the admin listener, so not with `workers: 0`.
   */
  expose?: (typeof EXPOSE)[number] | undefined;
  /**
   * Listeners by the name of their event, as for `on()` of the primary's runtime. They also get the
   * events before the first worker is ready. With `workers: 0` they get only the events of one
   * process.
   */
  on?: ClusterEventListeners | undefined;
  /** See {@link ControlOptions}; `false` opens no control socket. Has no effect with `workers: 0`. */
  control?: ControlOptions | false | undefined;
  /**
   * The name of this cluster on the command line: at most 40 letters, digits and `. _ -`, the first
   * a letter or digit. Default: the name in the nearest package.json of the program.
   */
  name?: string | undefined;
  /** See {@link LogOptions}. */
  log?: LogOptions | undefined;
  /**
   * See {@link WarningOptions}; `false` writes no warning when the cluster starts. The command
   * `nestjs-cluster-tools doctor` still shows its findings.
   */
  warnings?: WarningOptions | false | undefined;
}
