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

/** Format, level and destination of the cluster's log lines, not of the app's. */
export interface LogOptions {
  /** `'text'` (default) or `'json'`. Environment: `CLUSTER_LOG_FORMAT`. */
  format?: LogFormat | undefined;
  /**
   * Lowest level that is written. `'debug'` adds a line for each event, and every worker's lines
   * during startup. Two lines are always written, even with `'silent'`: why the cluster gives up,
   * and the first `write` error. Listeners get every event. Default `'info'`. Environment:
   * `CLUSTER_LOG_LEVEL`.
   */
  level?: 'debug' | LogLevel | 'silent' | undefined;
  /**
   * Function that gets each line, without colours or line break, instead of a standard stream. It
   * runs on the primary's event loop, so it must not block. It should write synchronously, or the
   * last lines before the exit are lost. If it throws or rejects, the line is lost, and the first
   * such error goes to standard error. It gets neither the line about a wrong option or address nor
   * the line that counts lost output. Default: the standard streams.
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
  // A cluster warns about these at startup.
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
  return `warnings: { ignore: ['${name}'] } in bootstrap() silences this`;
}

/** Settings for the warnings about an app that is not ready for several workers. */
export interface WarningOptions {
  /** Findings to suppress, at startup and in `nestjs-cluster-tools doctor`. Default: none. */
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
