import { isIP } from 'node:net';
import * as v from 'valibot';
import { EVENT_NAMES } from '../log/log.js';
import type { ClusterEventListeners, ClusterEventName } from '../log/events.js';
import { log, type LogOptions, warnings, type WarningOptions } from './log.js';
import {
  autoOrInteger,
  durationMs,
  flag,
  integer,
  MAX_TIMER_MS,
  MAX_WORKERS,
  oneOf,
  option,
  optionGroup,
  optionGroupOrFalse,
  port,
  portFromText,
  type SchemaOf,
  text,
  validate,
  variable,
} from './checks.js';

/** A memory limit in bytes. Each worker needs about 100 MB, so a limit below 16 MiB is refused as a unit error. */
const memoryBytes = integer(16 * 1024 * 1024, Number.MAX_SAFE_INTEGER);

/**
 * Limits for each worker's resident memory (RSS), checked every second. Environment:
 * `CLUSTER_MEMORY_SOFT_LIMIT_BYTES`, `CLUSTER_MEMORY_HARD_LIMIT_BYTES`.
 */
export interface MemoryOptions {
  /** RSS in bytes above which a worker is replaced, without losing requests. Default: none. */
  softLimitBytes?: number | undefined;
  /** RSS in bytes above which a worker is killed and replaced. Default: none. */
  hardLimitBytes?: number | undefined;
  /**
   * A worker above `softLimitBytes` writes a heap profile before it drains, at most once per hour
   * and slot. The log names the file and the functions that allocated most. Needs `watchdog`.
   * Default false.
   */
  profile?: boolean | undefined;
}

const memory = optionGroup({
  softLimitBytes: variable('CLUSTER_MEMORY_SOFT_LIMIT_BYTES', option(memoryBytes, Infinity)),
  hardLimitBytes: variable('CLUSTER_MEMORY_HARD_LIMIT_BYTES', option(memoryBytes, Infinity)),
  profile: option(flag, false),
} satisfies SchemaOf<MemoryOptions>);

/**
 * Limits at which healthy workers are replaced, as a remedy for slow leaks. One worker is replaced
 * at a time. Each limit varies by up to 10 % at random, so that not all workers are due at once.
 */
export interface RecycleOptions {
  /** Number of responses after which a worker is replaced. Default: never. */
  maxRequests?: number | undefined;
  /** Age at which a worker is replaced, in ms. Default: never. */
  maxAgeMs?: number | undefined;
}

const recycle = optionGroup({
  maxRequests: option(integer(1, Number.MAX_SAFE_INTEGER), Infinity),
  maxAgeMs: option(durationMs(1), Infinity),
} satisfies SchemaOf<RecycleOptions>);

/** How a rolling reload tests a new release. */
export interface ReloadOptions {
  /**
   * How long a new release is observed after the reload, in ms. If its workers fail in that time,
   * the previous release comes back. Default 30 000; 0 turns this off.
   */
  observeMs?: number | undefined;
}

const reload = optionGroup({
  observeMs: option(durationMs(), 30_000),
} satisfies SchemaOf<ReloadOptions>);

/**
 * How a worker, or the whole cluster, ends. Environment: `CLUSTER_SHUTDOWN_LAME_DUCK_MS`,
 * `CLUSTER_SHUTDOWN_DRAIN_TIMEOUT_MS`, `CLUSTER_SHUTDOWN_KILL_TIMEOUT_MS`.
 */
export interface ShutdownOptions {
  /**
   * How long `/health/ready` fails before a shutdown stops accepting requests, in ms. Default 0.
   * Behind a load balancer, set it above the load balancer's probe interval.
   */
  lameDuckMs?: number | undefined;
  /** Maximum time for requests in flight to finish, in ms, before they are aborted. Default 10 000. */
  drainTimeoutMs?: number | undefined;
  /** Maximum time for Nest's shutdown hooks after the drain, in ms, before the worker is killed. Default 2 000. */
  killTimeoutMs?: number | undefined;
}

const shutdown = optionGroup({
  lameDuckMs: variable('CLUSTER_SHUTDOWN_LAME_DUCK_MS', option(durationMs(), 0)),
  drainTimeoutMs: variable('CLUSTER_SHUTDOWN_DRAIN_TIMEOUT_MS', option(durationMs(), 10_000)),
  killTimeoutMs: variable('CLUSTER_SHUTDOWN_KILL_TIMEOUT_MS', option(durationMs(), 2_000)),
} satisfies SchemaOf<ShutdownOptions>);

/** The primary's own listener: `/health`, `/health/live`, `/health/ready` and `/metrics` answer even if no worker does. */
export interface AdminOptions {
  /** TCP port, 0..65535, also as text; with 0 the system chooses a port. Environment: `CLUSTER_ADMIN_PORT`. */
  port: number | string;
  /**
   * Address to listen on. An address that other machines can reach, such as `0.0.0.0`, needs a
   * `token`. Default `127.0.0.1`. Environment: `CLUSTER_ADMIN_HOST`.
   */
  host?: string | undefined;
  /**
   * Token that requests must send as `Authorization: Bearer …`, 16 to 512 characters. `false`, the
   * default on a loopback address, requires no token. Environment: `CLUSTER_ADMIN_TOKEN`, not
   * passed to workers.
   */
  token?: string | false | undefined;
}

const address = v.message(
  v.pipe(
    v.string(),
    v.check((host) => host === 'localhost' || isIP(host) !== 0),
  ),
  'an IP address or localhost (0.0.0.0 or :: for all interfaces)',
);

/** At least 16 random characters, which cannot be guessed. */
const TOKEN = /^[\x21-\x7e]{16,512}$/;
const EXPECTED_TOKEN =
  '16 to 512 ASCII characters without spaces, such as the output of `openssl rand -hex 32`';
const EXPECTED_TOKEN_OR_FALSE = `${EXPECTED_TOKEN}, or false to allow access without a token`;
const tokenOrFalse = v.union(
  [v.literal(false), text(TOKEN, EXPECTED_TOKEN_OR_FALSE)],
  EXPECTED_TOKEN_OR_FALSE,
);

/** Variable that holds the admin token. The primary does not pass it to workers, because it is secret. */
export const ADMIN_TOKEN_VARIABLE = 'CLUSTER_ADMIN_TOKEN';

const admin = optionGroup({
  port: variable('CLUSTER_ADMIN_PORT', port, portFromText),
  host: variable('CLUSTER_ADMIN_HOST', option(address, '127.0.0.1')),
  token: variable(ADMIN_TOKEN_VARIABLE, v.optional(tokenOrFalse), text(TOKEN, EXPECTED_TOKEN)),
} satisfies SchemaOf<AdminOptions>);

/** The unix socket by which the command line and the dashboard control the cluster. */
export interface ControlOptions {
  /**
   * Path of the socket, at most 107 bytes on Linux. Its directory must exist, and no other user may
   * be able to change its files. Default: in a private directory in `$XDG_RUNTIME_DIR`, or else in
   * the temporary directory.
   */
  path?: string | undefined;
}

/** On Linux `sun_path` of sockaddr_un holds 108 bytes, one of them for the closing NUL. */
const MAX_SOCKET_PATH_BYTES = 107;

const socketPath = v.message(
  v.pipe(v.string(), v.nonEmpty(), v.maxBytes(MAX_SOCKET_PATH_BYTES)),
  `a path of 1 to ${MAX_SOCKET_PATH_BYTES} bytes`,
);

/** `undefined` = no control socket. */
const control = v.pipe(
  optionGroupOrFalse({ path: v.optional(socketPath) } satisfies SchemaOf<ControlOptions>),
  v.transform((given) => given || undefined),
);

const listener = v.optional(v.function('a function that takes the event'));

/** The option `on`. */
export const listeners = optionGroup(
  Object.fromEntries(EVENT_NAMES.map((name) => [name, listener])),
) as v.GenericSchema<never, ClusterEventListeners>;

const eventName = oneOf(EVENT_NAMES);

/** @throws ClusterConfigurationError if no event has that name. */
export function checkEventName(name: unknown): ClusterEventName {
  return validate(eventName, name, 'name of an event');
}

/**
 * How connections reach the workers.
 *
 * - `shared`: the primary binds one socket and keeps it open. Every worker listens on that socket,
 *   and the kernel wakes a free worker. No connection passes through the primary.
 * - `reuse-port`: the primary opens a socket with SO_REUSEPORT for each slot. The kernel chooses a
 *   socket by a hash of the connection's addresses. Linux, Node 22.12 or later.
 * - `round-robin`: the primary accepts each connection and hands it to the next worker, as
 *   node:cluster does. Connections made while no worker is alive are refused.
 * - `ports`: the worker of slot k listens on `port + k`, for a load balancer in front.
 */
export type BalancingStrategy = (typeof BALANCING_STRATEGIES)[number];

const BALANCING_STRATEGIES = ['shared', 'reuse-port', 'round-robin', 'ports'] as const;

/** Options of {@link bootstrap}. Every option has a default. */
export interface ClusterOptions {
  /**
   * TCP port, 0..65535, as a number or text. With 0 the system chooses a port. Default: the
   * variable `PORT`, else 3000. An app without an HTTP server has no default.
   */
  port?: number | string | undefined;
  /** Address or host name to listen on. Default: all interfaces. */
  host?: string | undefined;
  /** Unix socket path to listen on instead of a port. At most 107 bytes on Linux. */
  path?: string | undefined;
  /**
   * Number of workers, 0..256. `'auto'` (default) starts one per core this process may use (CPU
   * affinity and cgroup quota), or as many as fit into its memory limit. 0 runs the app in this
   * process, without a cluster. Environment: `CLUSTER_WORKERS`, else `WEB_CONCURRENCY`.
   */
  workers?: number | 'auto' | undefined;
  /**
   * How connections reach the workers: `'shared'` (default), `'reuse-port'`, `'round-robin'` or
   * `'ports'`, see {@link BalancingStrategy}. Environment: `CLUSTER_BALANCING`.
   */
  balancing?: BalancingStrategy | undefined;
  /** Workers above the mean load ask some clients to reconnect, by `Connection: close` or GOAWAY. Default true. */
  rebalance?: boolean | undefined;
  /**
   * How long the app's HTTP server keeps an idle connection, in ms. The proxy in front must close
   * it earlier, or it sometimes answers 502. A value that the app sets itself is kept, such as
   * Fastify's 72 s. Default 65 000.
   */
  keepAliveTimeoutMs?: number | undefined;
  /** Maximum time for a worker to become ready, in ms, before it counts as failed. Default 30 000. */
  readyTimeoutMs?: number | undefined;
  /**
   * How long a worker's event loop may be blocked before the worker is killed and replaced, in ms,
   * at least 3 000. Default 10 000. With `false` it is never killed.
   */
  hangTimeoutMs?: number | false | undefined;
  /**
   * In each worker, a thread reports what blocks the event loop, and ends a blocked worker whose
   * primary has died. `false` saves the thread's memory. Default `true`.
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
   * Listeners that show `/metrics` and the details of `/health`. `'app'` (default): the app's port
   * and the admin listener. `'admin'`: only the admin listener; refused with `workers: 0`.
   */
  expose?: 'app' | 'admin' | undefined;
  /**
   * Listeners by event name, which run in the primary. Unlike listeners added with `runtime.on()`,
   * they get the events from the start. With `workers: 0` there are no worker events.
   */
  on?: ClusterEventListeners | undefined;
  /** See {@link ControlOptions}; `false` opens no control socket. Has no effect with `workers: 0`. */
  control?: ControlOptions | false | undefined;
  /**
   * Name of this cluster on the command line: at most 40 letters, digits and `. _ -`, the first a
   * letter or digit. Default: the name in the script's nearest package.json.
   */
  name?: string | undefined;
  /** See {@link LogOptions}. */
  log?: LogOptions | undefined;
  /**
   * See {@link WarningOptions}; `false` turns them off, but `nestjs-cluster-tools doctor` still
   * shows its findings.
   */
  warnings?: WarningOptions | false | undefined;
}

/** Time for three pings. The primary sends one each second, and may be up to a second late. */
const MIN_HANG_TIMEOUT_MS = 3_000;

const EXPECTED_HANG_TIMEOUT = `false or a number of milliseconds from ${MIN_HANG_TIMEOUT_MS} to ${MAX_TIMER_MS}`;

/** `Infinity` = no worker is killed for not answering. */
const hangTimeout = v.pipe(
  v.union(
    [v.literal(false), durationMs(MIN_HANG_TIMEOUT_MS, EXPECTED_HANG_TIMEOUT)],
    EXPECTED_HANG_TIMEOUT,
  ),
  v.transform((ms) => ms || Infinity),
);

/** The options of `bootstrap()` with their checks, defaults and variables. */
export const clusterOptions = optionGroup({
  port: option(port, 3_000),
  host: v.optional(v.message(v.pipe(v.string(), v.nonEmpty()), 'a host name or address')),
  path: v.optional(socketPath),
  workers: variable(
    ['CLUSTER_WORKERS', 'WEB_CONCURRENCY'],
    option(autoOrInteger(0, MAX_WORKERS), 'auto'),
  ),
  balancing: variable('CLUSTER_BALANCING', option(oneOf(BALANCING_STRATEGIES), 'shared')),
  rebalance: option(flag, true),
  keepAliveTimeoutMs: option(durationMs(1), 65_000),
  readyTimeoutMs: option(durationMs(1), 30_000),
  hangTimeoutMs: option(hangTimeout, 10_000),
  watchdog: option(flag, true),
  memory,
  recycle,
  reload,
  shutdown,
  admin: v.optional(admin),
  expose: option(oneOf(['app', 'admin']), 'app'),
  on: v.optional(listeners),
  control,
  name: v.optional(
    text(
      /^[A-Za-z0-9][\w.-]{0,39}$/,
      "at most 40 letters, digits and '.', '_' or '-', starting with a letter or digit",
    ),
  ),
  log,
  warnings,
} satisfies SchemaOf<ClusterOptions>);
