import * as v from 'valibot';
import {
  oneOf,
  option,
  optionGroup,
  optionGroupOrFalse,
  type SchemaOf,
  variable,
} from './checks.js';

/**
 * The format of the cluster's log lines.
 *
 * - `text`: time, level and event in words.
 * - `json`: one JSON object, with the fields of the event.
 */
export type LogFormat = (typeof LOG_FORMATS)[number];

const LOG_FORMATS = ['text', 'json'] as const;

/** The level of a line. */
export type LogLevel = 'info' | 'warn' | 'error';

/** Levels in ascending order. No line has the level `debug` or `silent`. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const satisfies readonly (
  'debug' | LogLevel | 'silent'
)[];

/** Format, level and destination of the cluster's own log lines. The lines of the app's logger are not affected. */
export interface LogOptions {
  /** How a line looks: `'text'` (default) or `'json'`. Environment: `CLUSTER_LOG_FORMAT`. */
  format?: LogFormat | undefined;
  /**
   * The lowest level that is written. Two things are written at every level, also at `'silent'`:
   * the line that says why the cluster gives up (a wrong option, an address that cannot be listened
   * on, workers that do not come up), and the first error of `write`. Listeners of the runtime get
   * every event. `'debug'` also writes what `'info'` leaves out: a line for each event, and the lines
   * of every worker while it starts. Default `'info'`. Environment: `CLUSTER_LOG_LEVEL`.
   */
  level?: 'debug' | LogLevel | 'silent' | undefined;
  /**
   * Function that is called with each line instead of writing the line to a standard stream. The
   * line has no colours and no line break at its end. The function is called only in the primary,
   * or with `workers: 0` in the single process. It runs on the event loop that supervises the
   * workers, so it must not block. It should write synchronously, because the process exits after
   * its last line. If it throws or rejects, its line is lost, and the first such error is written
   * to standard error. Two kinds of lines are not passed to the function. The line about a wrong
   * option or address is written before the function is used. The line that counts lost output is
   * written to the stream that lost the output. Default: the standard streams.
   */
  write?: ((line: string, level: LogLevel) => void) | undefined;
}

export const logFormat = oneOf(LOG_FORMATS);

export const log = optionGroup({
  format: variable('CLUSTER_LOG_FORMAT', option(logFormat, 'text')),
  level: variable('CLUSTER_LOG_LEVEL', option(oneOf(LOG_LEVELS), 'info')),
  write: v.optional(
    v.custom<NonNullable<LogOptions['write']>>(
      (value) => typeof value === 'function',
      'a function that takes a line and its level',
    ),
  ),
} satisfies SchemaOf<LogOptions>);

/** {@link LogOptions} with the defaults and the environment applied. */
export type ResolvedLogOptions = v.InferOutput<typeof log>;

/** The names of the findings: the parts of an app that do not work correctly in several workers. */
export const FINDING_NAMES = [
  // The start of a cluster warns of these.
  'scheduled-jobs',
  'throttler',
  'cache',
  'socket-io',
  'cpu-bound-threads',
  // `nestjs-cluster-tools doctor` also finds these.
  'sessions',
  'in-process-events',
  'web-socket-broadcast',
  'database-pool',
  'schema-synchronization',
  'own-health',
  'own-metrics',
  'memory',
  'signal-listener',
  'cpu-bound-inline',
  'warning',
] as const;

/** Name of a finding. The README of `@nestjs-cluster/tools` explains each name. */
export type FindingName = (typeof FINDING_NAMES)[number];

/** The last part of a warning, which says how to silence the warning. */
export function silencedBy(name: FindingName): string {
  return `warnings: { ignore: ['${name}'] } of bootstrap() silences this`;
}

/** Settings of the warnings about an app that is not ready for several workers. */
export interface WarningOptions {
  /** Findings to suppress, at the start and in `nestjs-cluster-tools doctor`. Default: none. */
  ignore?: readonly FindingName[] | undefined;
}

/** `shown`: whether the cluster logs the warnings when it starts. */
export const warnings = v.pipe(
  optionGroupOrFalse({
    ignore: option(v.array(oneOf(FINDING_NAMES), 'an array of finding names'), [] as FindingName[]),
  } satisfies SchemaOf<WarningOptions>),
  v.transform((given) =>
    Object.freeze({ shown: given !== false, ignore: given ? given.ignore : ([] as FindingName[]) }),
  ),
);
