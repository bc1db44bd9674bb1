import { isIP } from 'node:net';
import * as v from 'valibot';
import { BALANCING_STRATEGIES, EXPOSE, OFFLOAD_MODES } from '../choices.js';
import { FINDING_NAMES } from '../warning-options.interface.js';
import { eventListenersSchema } from '../event-listeners.js';
import { LOG_FORMATS, LOG_LEVELS, type LogOptions } from '../log-options.interface.js';
import {
  durationMs,
  flag,
  integer,
  integerOf,
  MAX_TIMER_MS,
  MAX_WORKERS,
  oneOf,
  option,
  optionGroup,
  optionGroupOrFalse,
} from './validate.js';

/** Maximum number of threads of a process. A higher number is probably a mistake, and is refused. */
export const MAX_THREADS = 256;

/** On Linux `sun_path` of sockaddr_un holds 108 bytes, one of them for the closing NUL. */
const MAX_SOCKET_PATH_BYTES = 107;

const EXPECTED_WORKERS = `'auto' or a whole number from 0 to ${MAX_WORKERS}`;
const EXPECTED_PATH = `a path of 1 to ${MAX_SOCKET_PATH_BYTES} bytes`;

const EXPECTED_THREADS = `'auto' or a whole number from 1 to ${MAX_THREADS}`;

export const threadsSchema = v.union(
  [v.literal('auto'), integerOf(EXPECTED_THREADS, 1, MAX_THREADS)],
  EXPECTED_THREADS,
);

export const workersSchema = v.union(
  [v.literal('auto'), integerOf(EXPECTED_WORKERS, 0, MAX_WORKERS)],
  EXPECTED_WORKERS,
);

/** A memory limit in bytes. Each worker needs about 100 MB, so a limit below 16 MiB is refused as a wrong unit. */
export const memoryBytes = integer(16 * 1024 * 1024, Number.MAX_SAFE_INTEGER);

export const balancingSchema = oneOf(BALANCING_STRATEGIES);
export const offloadModeSchema = oneOf(OFFLOAD_MODES);
export const logFormatSchema = oneOf(LOG_FORMATS);
export const logLevelSchema = oneOf(LOG_LEVELS);

const writeSchema = v.function(
  'a function that takes a line and its level',
) as unknown as v.GenericSchema<NonNullable<LogOptions['write']>>;

export const MAX_PORT = 65_535;

const socketPath = v.pipe(
  v.string(EXPECTED_PATH),
  v.nonEmpty(EXPECTED_PATH),
  v.maxBytes(MAX_SOCKET_PATH_BYTES, EXPECTED_PATH),
);

const EXPECTED_NAME = 'at most 40 letters, digits and . _ -, the first a letter or digit';

const EXPECTED_PORT = `a whole number from 0 to ${MAX_PORT}`;

/** A port as text, as in the environment. Requires digits: `Number('')` and `Number(' ')` are 0. */
export const portFromText = v.pipe(
  v.string(EXPECTED_PORT),
  v.regex(/^(0|[1-9]\d{0,4})$/, EXPECTED_PORT),
  v.check((text) => Number(text) <= MAX_PORT, EXPECTED_PORT),
  v.transform(Number),
);

const portSchema = v.union([integerOf(EXPECTED_PORT, 0, MAX_PORT), portFromText], EXPECTED_PORT);

const EXPECTED_ADMIN_HOST =
  'an address: a loopback one (127.0.0.1, ::1), or that of an interface (0.0.0.0 and :: are all)';

export const adminHostSchema = v.pipe(
  v.string(EXPECTED_ADMIN_HOST),
  v.check((host) => host === 'localhost' || isIP(host) !== 0, EXPECTED_ADMIN_HOST),
);

/** The default address of the admin listener, which only this machine reaches. */
export const ADMIN_HOST = '127.0.0.1';

const EXPECTED_TOKEN =
  '16 to 512 characters of ASCII without spaces, as `openssl rand -hex 32` prints them';
const EXPECTED_TOKEN_OR_FALSE = `${EXPECTED_TOKEN}, or false where everybody may read`;

/** A token has at least 16 characters, because so many random characters cannot be guessed. */
const token = (expected: string) =>
  v.pipe(v.string(expected), v.regex(/^[\x21-\x7e]{16,512}$/, expected));

export const tokenSchema = token(EXPECTED_TOKEN);

/** Maximum length of a profile, in seconds. Longer profiles are large and do not show more. */
export const MAX_PROFILE_SECONDS = 60;

/** Three pings, because the primary may send a ping up to a second late. It sends one each second. */
const MIN_HANG_TIMEOUT_MS = 3_000;

const EXPECTED_HANG_TIMEOUT = `false or a number of milliseconds from ${MIN_HANG_TIMEOUT_MS} to ${MAX_TIMER_MS}`;

const hangTimeout = v.union(
  [v.literal(false), durationMs(MIN_HANG_TIMEOUT_MS, EXPECTED_HANG_TIMEOUT)],
  EXPECTED_HANG_TIMEOUT,
);

/** The options that a user may pass to `bootstrap()`, with their defaults. */
export const clusterOptionsSchema = optionGroup({
  port: option(portSchema, 3_000),
  host: v.optional(
    v.pipe(v.string('a host name or address'), v.nonEmpty('a host name or address')),
  ),
  path: v.optional(socketPath),
  workers: option(workersSchema, 'auto'),
  balancing: option(balancingSchema, 'shared'),
  rebalance: option(flag, true),
  readyTimeoutMs: option(durationMs(1), 30_000),
  hangTimeoutMs: option(hangTimeout, 10_000),
  watchdog: option(flag, true),
  memory: optionGroup({
    softLimitBytes: option(memoryBytes, Infinity),
    hardLimitBytes: option(memoryBytes, Infinity),
  }),
  recycle: optionGroup({
    maxRequests: option(integer(1, Number.MAX_SAFE_INTEGER), Infinity),
    maxAgeMs: option(durationMs(1), Infinity),
  }),
  reload: optionGroup({
    observeMs: option(durationMs(), 30_000),
  }),
  shutdown: optionGroup({
    lameDuckMs: option(durationMs(), 0),
    drainTimeoutMs: option(durationMs(), 10_000),
    killTimeoutMs: option(durationMs(), 2_000),
  }),
  admin: v.optional(
    optionGroup({
      port: portSchema,
      host: option(adminHostSchema, ADMIN_HOST),
      token: v.optional(
        v.union([v.literal(false), token(EXPECTED_TOKEN_OR_FALSE)], EXPECTED_TOKEN_OR_FALSE),
      ),
    }),
  ),
  expose: option(oneOf(EXPOSE), 'app'),
  on: v.optional(eventListenersSchema),
  control: optionGroupOrFalse({ path: v.optional(socketPath) }),
  name: v.optional(
    v.pipe(v.string(EXPECTED_NAME), v.regex(/^[A-Za-z0-9][\w.-]{0,39}$/, EXPECTED_NAME)),
  ),
  log: optionGroup({
    format: option(logFormatSchema, 'text'),
    level: option(logLevelSchema, 'info'),
    write: v.optional(writeSchema),
  }),
  warnings: optionGroupOrFalse({
    ignore: option(v.array(oneOf(FINDING_NAMES), 'an array of findings'), []),
  }),
});
