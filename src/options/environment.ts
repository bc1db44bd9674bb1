import * as v from 'valibot';
import type { BootLogs, ClusterOptions, OffloadMode } from './cluster-options.interface.js';
import type { LogOptions } from './log-options.interface.js';
import {
  balancingSchema,
  bootLogsSchema,
  EXPECTED_THREADS,
  EXPECTED_WORKERS,
  logFormatSchema,
  logLevelSchema,
  offloadModeSchema,
  threadsSchema,
  workersSchema,
} from './options.schema.js';
import { validate } from './validate.js';

/** What an operator may set without touching the code. Wins over the options of `bootstrap()`. */
export interface EnvironmentOverrides extends Pick<ClusterOptions, 'workers' | 'balancing'> {
  log: Pick<LogOptions, 'format' | 'level'>;
  bootLogs?: BootLogs;
  offload?: OffloadMode;
  threads?: number | 'auto';
}

/** Text of a variable as a count. `Number('')` and `Number(' ')` are 0: hence the digits. */
const countFromText = (expected: string) =>
  v.pipe(
    v.string(),
    v.regex(/^(auto|\d{1,3})$/, expected),
    v.transform((text) => (text === 'auto' ? ('auto' as const) : Number(text))),
  );

const workersFromText = v.pipe(countFromText(EXPECTED_WORKERS), workersSchema);

const environmentSchema = v.object({
  CLUSTER_WORKERS: v.optional(workersFromText),
  WEB_CONCURRENCY: v.optional(workersFromText),
  CLUSTER_BALANCING: v.optional(balancingSchema),
  CLUSTER_LOG_FORMAT: v.optional(logFormatSchema),
  CLUSTER_LOG_LEVEL: v.optional(logLevelSchema),
  CLUSTER_BOOT_LOGS: v.optional(bootLogsSchema),
  CLUSTER_OFFLOAD: v.optional(offloadModeSchema),
  CLUSTER_THREADS: v.optional(v.pipe(countFromText(EXPECTED_THREADS), threadsSchema)),
});

/**
 * Reads the overrides from the environment. A variable that is set but empty
 * counts as not set, as in a shell's `${VAR:-default}`, and a fallback that is
 * not used cannot be wrong.
 *
 * @throws ClusterConfigurationError when a value does not parse.
 */
export function readEnvironment(env: NodeJS.ProcessEnv): EnvironmentOverrides {
  const values = validate(
    environmentSchema,
    {
      CLUSTER_WORKERS: env['CLUSTER_WORKERS'] || undefined,
      WEB_CONCURRENCY: (!env['CLUSTER_WORKERS'] && env['WEB_CONCURRENCY']) || undefined,
      CLUSTER_BALANCING: env['CLUSTER_BALANCING'] || undefined,
      CLUSTER_LOG_FORMAT: env['CLUSTER_LOG_FORMAT'] || undefined,
      CLUSTER_LOG_LEVEL: env['CLUSTER_LOG_LEVEL'] || undefined,
      CLUSTER_BOOT_LOGS: env['CLUSTER_BOOT_LOGS'] || undefined,
      CLUSTER_OFFLOAD: env['CLUSTER_OFFLOAD'] || undefined,
      CLUSTER_THREADS: env['CLUSTER_THREADS'] || undefined,
    },
    'environment',
  );
  return {
    workers: values.CLUSTER_WORKERS ?? values.WEB_CONCURRENCY,
    balancing: values.CLUSTER_BALANCING,
    log: { format: values.CLUSTER_LOG_FORMAT, level: values.CLUSTER_LOG_LEVEL },
    bootLogs: values.CLUSTER_BOOT_LOGS,
    offload: values.CLUSTER_OFFLOAD,
    threads: values.CLUSTER_THREADS,
  };
}
