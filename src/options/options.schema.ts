import { isIPv4 } from 'node:net';
import * as v from 'valibot';
import {
  type AdminOptions,
  BALANCING_STRATEGIES,
  BOOT_LOGS,
  OFFLOAD_MODES,
} from './cluster-options.interface.js';
import { LOG_FORMATS, LOG_LEVELS, type LogOptions } from './log-options.interface.js';
import {
  durationMs,
  flag,
  integer,
  integerOf,
  numberBetween,
  oneOf,
  optionGroup,
  optionGroupOrFalse,
} from './validate.js';

/** More workers than this are a mistake in a unit or a variable, not a machine. */
export const MAX_WORKERS = 256;

/** Likewise. */
export const MAX_THREADS = 256;

/** sun_path of sockaddr_un holds 108 bytes on Linux, one of them the closing NUL. */
const MAX_SOCKET_PATH_BYTES = 107;

export const EXPECTED_WORKERS = `'auto' or a whole number from 0 to ${MAX_WORKERS}`;
const EXPECTED_PATH = `a path of 1 to ${MAX_SOCKET_PATH_BYTES} bytes`;

export const EXPECTED_THREADS = `'auto' or a whole number from 1 to ${MAX_THREADS}`;

export const threadsSchema = v.union(
  [v.literal('auto'), integerOf(EXPECTED_THREADS, 1, MAX_THREADS)],
  EXPECTED_THREADS,
);

export const workersSchema = v.union(
  [v.literal('auto'), integerOf(EXPECTED_WORKERS, 0, MAX_WORKERS)],
  EXPECTED_WORKERS,
);

/** A worker holds about 100 MB before its app holds anything: less is a mistake in the unit. */
export const memoryBytes = integer(16 * 1024 * 1024, Number.MAX_SAFE_INTEGER);

export const balancingSchema = oneOf(BALANCING_STRATEGIES);
export const offloadModeSchema = oneOf(OFFLOAD_MODES);
export const bootLogsSchema = oneOf(BOOT_LOGS);
export const logFormatSchema = oneOf(LOG_FORMATS);
export const logLevelSchema = oneOf(LOG_LEVELS);

const writeSchema = v.function(
  'a function that takes a line and its level',
) as unknown as v.GenericSchema<NonNullable<LogOptions['write']>>;

const EXPECTED_PORT = 'a whole number from 0 to 65535';
const portSchema = integerOf(EXPECTED_PORT, 0, 65_535);

const EXPECTED_LOOPBACK =
  'a loopback address (127.0.0.1, ::1): it asks nobody for a password. To reach it from elsewhere put a proxy in front that does';

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'));

/** The one group with a key that has no default. */
const adminSchema = v.pipe(
  optionGroup({
    port: portSchema,
    host: v.pipe(v.string(EXPECTED_LOOPBACK), v.check(isLoopback, EXPECTED_LOOPBACK)),
  }),
  v.rawCheck(({ dataset, addIssue }) => {
    const input = dataset.value as { port?: unknown } | null | undefined;
    if (typeof input !== 'object' || input === null || input.port !== undefined) return;
    const path = [{ type: 'object', origin: 'value', input, key: 'port', value: undefined }];
    addIssue({ input: undefined, message: EXPECTED_PORT, path: path as never });
  }),
) as unknown as v.GenericSchema<AdminOptions>;

/** What a user may pass to `bootstrap()`. */
export const clusterOptionsSchema = optionGroup({
  port: portSchema,
  host: v.pipe(v.string('a host name or address'), v.nonEmpty('a host name or address')),
  path: v.pipe(
    v.string(EXPECTED_PATH),
    v.nonEmpty(EXPECTED_PATH),
    v.maxBytes(MAX_SOCKET_PATH_BYTES, EXPECTED_PATH),
  ),
  workers: workersSchema,
  balancing: balancingSchema,
  rebalance: flag,
  readyTimeoutMs: durationMs(1),
  restart: optionGroup({
    backoffMs: durationMs(),
    backoffFactor: numberBetween(1, 100),
    maxBackoffMs: durationMs(),
    jitterRatio: numberBetween(0, 1),
    stableAfterMs: durationMs(),
    maxFailures: integer(1, 1_000),
    windowMs: durationMs(1),
  }),
  heartbeat: optionGroupOrFalse({ intervalMs: durationMs(10), timeoutMs: durationMs(100) }),
  watchdog: flag,
  expressPrototypes: flag,
  memory: optionGroup({ softLimitBytes: memoryBytes, hardLimitBytes: memoryBytes }),
  recycle: optionGroup({
    maxRequests: integer(1, Number.MAX_SAFE_INTEGER),
    maxAgeMs: durationMs(1),
    jitterRatio: numberBetween(0, 1),
  }),
  reload: optionGroup({ canaryMs: durationMs() }),
  shutdown: optionGroup({
    lameDuckMs: durationMs(),
    drainTimeoutMs: durationMs(),
    killTimeoutMs: durationMs(),
  }),
  admin: adminSchema,
  log: optionGroup({ format: logFormatSchema, level: logLevelSchema, write: writeSchema }),
});
