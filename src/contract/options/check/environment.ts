import * as v from 'valibot';
import {
  balancingSchema,
  bootLogsSchema,
  EXPECTED_THREADS,
  EXPECTED_WORKERS,
  logFormatSchema,
  logLevelSchema,
  offloadModeSchema,
  portFromText,
  threadsSchema,
  tokenSchema,
  workersSchema,
} from './options.schema.js';
import { validate } from './validate.js';

/** Parses a variable as a count. Requires digits, because `Number('')` and `Number(' ')` are 0. */
const countFromText = (expected: string) =>
  v.pipe(
    v.string(),
    v.regex(/^(auto|\d{1,3})$/, expected),
    v.transform((text) => (text === 'auto' ? ('auto' as const) : Number(text))),
  );

const workersFromText = v.pipe(countFromText(EXPECTED_WORKERS), workersSchema);

/** Variable that holds the admin token. The primary does not pass it to workers, because it is secret. */
export const ADMIN_TOKEN_VARIABLE = 'CLUSTER_ADMIN_TOKEN';

const variables = {
  CLUSTER_WORKERS: v.optional(workersFromText),
  WEB_CONCURRENCY: v.optional(workersFromText),
  CLUSTER_BALANCING: v.optional(balancingSchema),
  CLUSTER_LOG_FORMAT: v.optional(logFormatSchema),
  CLUSTER_LOG_LEVEL: v.optional(logLevelSchema),
  CLUSTER_BOOT_LOGS: v.optional(bootLogsSchema),
  CLUSTER_OFFLOAD: v.optional(offloadModeSchema),
  CLUSTER_THREADS: v.optional(v.pipe(countFromText(EXPECTED_THREADS), threadsSchema)),
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
    logFormat: values.CLUSTER_LOG_FORMAT,
    logLevel: values.CLUSTER_LOG_LEVEL,
    bootLogs: values.CLUSTER_BOOT_LOGS,
    offload: values.CLUSTER_OFFLOAD,
    threads: values.CLUSTER_THREADS,
    adminToken: values[ADMIN_TOKEN_VARIABLE],
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
