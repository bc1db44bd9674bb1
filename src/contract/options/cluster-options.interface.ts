import type { ClusterEventListeners } from '../events/index.js';
import type { DoctorOptions } from './doctor-options.interface.js';
import type { LogOptions } from './log-options.interface.js';

/**
 * How connections reach the workers.
 *
 * - `shared`: the primary binds one socket and holds it; every worker listens
 *   on it and the kernel wakes a free one. Nothing passes through the primary.
 * - `reuse-port`: a socket with SO_REUSEPORT for each slot, all held by the
 *   primary; the kernel chooses one by a hash of the connection's addresses.
 *   Linux, Node 22.12 or later.
 * - `round-robin`: the primary accepts and hands each connection to the next
 *   worker, as node:cluster does. Connections made while no worker is alive are refused.
 * - `ports`: the worker of slot k listens on `port + k`, for a load balancer in front.
 */
export type BalancingStrategy = (typeof BALANCING_STRATEGIES)[number];

export const BALANCING_STRATEGIES = ['shared', 'reuse-port', 'round-robin', 'ports'] as const;

/** When and how fast a failed worker is started again. */
export interface RestartOptions {
  /**
   * Wait before the first restart after a failure, in ms. Each further failure in a row doubles it;
   * up to 20 % at random is added or taken. Default 100.
   */
  backoffMs?: number | undefined;
  /**
   * Longest wait, in ms, for a slot whose workers do not come up. Default 15 000. After a worker
   * that was ready the wait is at most 1 s, or `backoffMs` if that is longer.
   */
  maxBackoffMs?: number | undefined;
  /**
   * A worker that lived this long is restarted at once, in ms. Default 30 000. A crash loop is over
   * when a worker has lived twice as long.
   */
  stableAfterMs?: number | undefined;
  /**
   * Failures of one slot in a row that are a crash loop, if no worker lived for twice
   * `stableAfterMs` between them. Default 5. Kills from outside do not count.
   */
  maxFailures?: number | undefined;
}

/** How the primary asks workers for a sign of life. */
export interface HeartbeatOptions {
  /** Time between two pings, in ms. Also how fresh `/health` is. Default 1 000. */
  intervalMs?: number | undefined;
  /** A worker that owes an answer for this long is hung and is killed, in ms. Default 10 000. */
  timeoutMs?: number | undefined;
}

/** The thread in each worker that watches its event loop. */
export interface WatchdogOptions {
  /**
   * Length of the CPU profile that is written before a hung worker is killed, 0..60 000 ms; 0 = none.
   * At least 2 s below `heartbeat.timeoutMs`. Default 0.
   */
  profileMs?: number | undefined;
}

/** How much memory a worker may hold: its resident memory (RSS), looked at every second. */
export interface MemoryOptions {
  /** Above it the worker is replaced: first the new one is ready, then it drains. Bytes. Default: none. */
  softLimitBytes?: number | undefined;
  /** Above it the worker is killed, and replaced. Bytes. Default: none. */
  hardLimitBytes?: number | undefined;
}

/**
 * When a healthy worker is replaced, against slow leaks. One slot at a time. The limits of each
 * worker differ from these by up to 10 % at random, so that not all are due at once.
 */
export interface RecycleOptions {
  /** Responses after which a worker is replaced. Default: never. */
  maxRequests?: number | undefined;
  /** Age at which a worker is replaced, in ms. Default: never. */
  maxAgeMs?: number | undefined;
}

/** How a rolling reload goes. */
export interface ReloadOptions {
  /** Time that a new worker has to live, before its health is checked and the old one drains, in ms. Default 1 000. */
  canaryMs?: number | undefined;
  /**
   * Time for which a new release is observed once every worker runs it, in ms. If a worker of it
   * fails in that time, the release before comes back. Default 30 000; 0 = not observed.
   */
  observeMs?: number | undefined;
}

/** How a worker, or the whole cluster, ends. */
export interface ShutdownOptions {
  /**
   * Time in which readiness is already off and requests are still accepted, in
   * ms. Default 0; behind a load balancer set it above its probe interval.
   */
  lameDuckMs?: number | undefined;
  /** Time that requests in flight have to finish, in ms. Default 10 000. */
  drainTimeoutMs?: number | undefined;
  /** Time after that for Nest's shutdown hooks, before the worker is killed, in ms. Default 2 000. */
  killTimeoutMs?: number | undefined;
}

/** The primary's own listener: `/health`, `/health/live`, `/health/ready` and `/metrics` answer even if no worker does. */
export interface AdminOptions {
  /** TCP port, 0..65535, also as text; 0 lets the system choose one. */
  port: number | string;
  /**
   * Address to listen on. Default `127.0.0.1`, which only this machine reaches; another one, such as
   * `0.0.0.0`, wants a `token`.
   */
  host?: string | undefined;
  /**
   * The token that a request has to send as `Authorization: Bearer …`: 16 to 512 characters. With
   * `false`, everybody who reaches the listener may read; on a loopback address that is the
   * default. Environment: `CLUSTER_ADMIN_TOKEN`, which workers are not given.
   */
  token?: string | false | undefined;
}

/** The unix socket by which the command line and the dashboard control the cluster. */
export interface ControlOptions {
  /**
   * The path of the socket. Its directory must exist, and nobody else may be able to change files
   * of this user in it. At most 107 bytes on Linux. Default: a directory of this user's own in
   * `$XDG_RUNTIME_DIR`, else in the temporary directory.
   */
  path?: string | undefined;
}

/** Options of {@link bootstrap}. Every one has a default. */
export interface ClusterOptions {
  /**
   * TCP port, 0..65535, also as text: `process.env.PORT ?? 3000`. 0 lets the system choose one; in
   * production (`NODE_ENV`) only as text, since `Number('')` is 0, too. Default: `PORT` of the
   * environment, else 3000, for an app that has an HTTP server; an app without one gets no address.
   */
  port?: number | string | undefined;
  /** Address or host name to listen on. Default: all interfaces. */
  host?: string | undefined;
  /** Unix socket path to listen on instead of a port. At most 107 bytes on Linux. */
  path?: string | undefined;
  /**
   * Number of workers, 0..256. `'auto'` (default) is the cores this process
   * may use (CPU affinity and cgroup quota), no more than its memory limit
   * allows. 0 runs the app in this process, without a cluster.
   * Environment: `CLUSTER_WORKERS`, else `WEB_CONCURRENCY`.
   */
  workers?: number | 'auto' | undefined;
  /** How connections reach the workers. Default `'shared'`. Environment: `CLUSTER_BALANCING`. */
  balancing?: BalancingStrategy | undefined;
  /**
   * Whether workers that carry more than their share ask some of their clients to connect again, by
   * `Connection: close` or GOAWAY. Looked at once a second. Default true.
   */
  rebalance?: boolean | undefined;
  /** A worker that is not ready by then has failed, in ms. Default 30 000. */
  readyTimeoutMs?: number | undefined;
  /** See {@link RestartOptions}. */
  restart?: RestartOptions | undefined;
  /** See {@link HeartbeatOptions}; `false` never kills a worker that does not answer. */
  heartbeat?: HeartbeatOptions | false | undefined;
  /**
   * A thread in each worker that reports what blocks its event loop, and ends the process when its
   * primary is gone while it is blocked. Costs 8 to 13 MB of memory a worker. See
   * {@link WatchdogOptions}; `false` leaves it out.
   */
  watchdog?: WatchdogOptions | false | undefined;
  /** See {@link MemoryOptions}. */
  memory?: MemoryOptions | undefined;
  /** See {@link RecycleOptions}. */
  recycle?: RecycleOptions | undefined;
  /** See {@link ReloadOptions}. */
  reload?: ReloadOptions | undefined;
  /** See {@link ShutdownOptions}. */
  shutdown?: ShutdownOptions | undefined;
  /** See {@link AdminOptions}. Default: no such listener. */
  admin?: AdminOptions | undefined;
  /**
   * Which port shows the details of `/health` and the page of `/metrics`: the port of the app and
   * the admin listener's, or only the admin listener's. Default `'app'`.
   */
  expose?: (typeof EXPOSE)[number] | undefined;
  /**
   * Listeners by the name of their event, as with `on()` of the primary's runtime. These also get
   * the events before the first worker is ready. With `workers: 0`: the few events of one process.
   */
  on?: ClusterEventListeners | undefined;
  /** See {@link ControlOptions}; `false` makes no such socket. Without effect with `workers: 0`. */
  control?: ControlOptions | false | undefined;
  /**
   * The name of this cluster on the command line: at most 40 letters, digits and `. _ -`, the first
   * a letter or digit. Default: the name in the nearest package.json of the program.
   */
  name?: string | undefined;
  /** See {@link LogOptions}. */
  log?: LogOptions | undefined;
  /** See {@link DoctorOptions}; `false` writes no warning when the cluster starts. The command `nestjs-cluster doctor` still shows them. */
  doctor?: DoctorOptions | false | undefined;
}

/** The values of the option `expose`. */
export const EXPOSE = ['app', 'admin'] as const;

/** The place where a `@CpuBound()` method runs: in a thread of the pool, or on the event loop. */
export type OffloadMode = (typeof OFFLOAD_MODES)[number];

export const OFFLOAD_MODES = ['threads', 'inline'] as const;

/**
 * The workers whose Nest logs everything while they come up. Warnings and errors are logged by all.
 *
 * - `first`: the first worker of slot 0.
 * - `all`: every worker; each has a line of its own when it is ready or leaves, too.
 * - `none`: no worker.
 *
 * Environment: `CLUSTER_BOOT_LOGS`.
 */
export type BootLogs = (typeof BOOT_LOGS)[number];

export const BOOT_LOGS = ['first', 'all', 'none'] as const;
