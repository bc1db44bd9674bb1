import * as v from 'valibot';
import {
  adminHostSchema,
  balancingSchema,
  logFormatSchema,
  logLevelSchema,
  memoryBytes,
  offloadModeSchema,
  portFromText,
  threadsSchema,
  tokenSchema,
  workersSchema,
} from './options.schema.js';
import { durationMs, validate } from './validate.js';

/**
 * A variable whose digits are a number for `schema`. Other text reaches `schema` as it is. Requires
 * digits, because `Number('')` and `Number(' ')` are 0.
 */
const fromText = <const T extends v.GenericSchema>(schema: T) =>
  v.pipe(
    v.string(),
    v.transform((text): unknown => (/^\d+$/.test(text) ? Number(text) : text)),
    schema,
  );

const workersFromText = fromText(workersSchema);
const timeFromText = v.optional(fromText(durationMs()));
const bytesFromText = v.optional(fromText(memoryBytes));

/** Variable that holds the admin token. The primary does not pass it to workers, because it is secret. */
export const ADMIN_TOKEN_VARIABLE = 'CLUSTER_ADMIN_TOKEN';

const variables = {
  CLUSTER_WORKERS: v.optional(workersFromText),
  WEB_CONCURRENCY: v.optional(workersFromText),
  CLUSTER_BALANCING: v.optional(balancingSchema),
  CLUSTER_LOG_FORMAT: v.optional(logFormatSchema),
  CLUSTER_LOG_LEVEL: v.optional(logLevelSchema),
  CLUSTER_OFFLOAD: v.optional(offloadModeSchema),
  CLUSTER_THREADS: v.optional(fromText(threadsSchema)),
  CLUSTER_SHUTDOWN_LAME_DUCK_MS: timeFromText,
  CLUSTER_SHUTDOWN_DRAIN_TIMEOUT_MS: timeFromText,
  CLUSTER_SHUTDOWN_KILL_TIMEOUT_MS: timeFromText,
  CLUSTER_MEMORY_SOFT_LIMIT_BYTES: bytesFromText,
  CLUSTER_MEMORY_HARD_LIMIT_BYTES: bytesFromText,
  CLUSTER_ADMIN_PORT: v.optional(portFromText),
  CLUSTER_ADMIN_HOST: v.optional(adminHostSchema),
  [ADMIN_TOKEN_VARIABLE]: v.optional(tokenSchema),
};

/**
 * Reads the variables that an operator may set without a change of the code. They override the
 * options of `bootstrap()` and `forRoot()`. A variable that is set but empty counts as not set, as
 * in a shell's `${VAR:-default}`. `WEB_CONCURRENCY` is not checked if `CLUSTER_WORKERS` is set.
 *
 * @throws ClusterConfigurationError if a value cannot be parsed.
 */
export function readEnvironment(env: NodeJS.ProcessEnv) {
  const given = Object.fromEntries(
    Object.keys(variables).map((name) => [name, env[name] || undefined]),
  );
  if (given['CLUSTER_WORKERS'] !== undefined) delete given['WEB_CONCURRENCY'];
  const values = validate(v.object(variables), given, 'environment');
  return {
    workers: values.CLUSTER_WORKERS ?? values.WEB_CONCURRENCY,
    balancing: values.CLUSTER_BALANCING,
    log: { format: values.CLUSTER_LOG_FORMAT, level: values.CLUSTER_LOG_LEVEL },
    offload: values.CLUSTER_OFFLOAD,
    threads: values.CLUSTER_THREADS,
    shutdown: {
      lameDuckMs: values.CLUSTER_SHUTDOWN_LAME_DUCK_MS,
      drainTimeoutMs: values.CLUSTER_SHUTDOWN_DRAIN_TIMEOUT_MS,
      killTimeoutMs: values.CLUSTER_SHUTDOWN_KILL_TIMEOUT_MS,
    },
    memory: {
      softLimitBytes: values.CLUSTER_MEMORY_SOFT_LIMIT_BYTES,
      hardLimitBytes: values.CLUSTER_MEMORY_HARD_LIMIT_BYTES,
    },
    admin: {
      port: values.CLUSTER_ADMIN_PORT,
      host: values.CLUSTER_ADMIN_HOST,
      token: values[ADMIN_TOKEN_VARIABLE],
    },
  };
}

/**
 * The value of `PORT`, the variable by which hosts and process managers give a program its port. It
 * is the default of the option `port`. If the option is set, the variable is not read, so a wrong
 * value does no harm then.
 *
 * @throws ClusterConfigurationError if the value is not a port.
 */
export function portIn(env: NodeJS.ProcessEnv): number | undefined {
  const schema = v.object({ PORT: v.optional(portFromText) });
  return validate(schema, { PORT: env['PORT'] || undefined }, 'environment').PORT;
}
