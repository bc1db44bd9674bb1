/**
 * How a line of the cluster looks.
 *
 * - `text`: time, level and event in words.
 * - `json`: one JSON object, with the fields of the event.
 * - `pino`: one JSON object in the shape of pino's, so that pino-pretty reads it too.
 * - `nest`: as Nest's `ConsoleLogger` writes text, with its colours.
 */
export type LogFormat = (typeof LOG_FORMATS)[number];

export const LOG_FORMATS = ['text', 'json', 'pino', 'nest'] as const;

/** How loud a line is. */
export type LogLevel = 'info' | 'warn' | 'error';

/** From the lowest on; `silent` is above every line. */
export const LOG_LEVELS = ['info', 'warn', 'error', 'silent'] as const satisfies readonly (
  LogLevel | 'silent'
)[];

/** The cluster's own lines: how they look, which are written, and where to. They do not concern the app's lines, which its logger writes. */
export interface LogOptions {
  /** How a line looks. Default `'text'`. Environment: `CLUSTER_LOG_FORMAT`. */
  format?: LogFormat | undefined;
  /**
   * The lowest level that is written. Two things are written at every level, also at `'silent'`:
   * the line that says why the cluster gives up (a wrong option, an address that cannot be listened
   * on, workers that do not come up), and the first error of `write`. Listeners of the runtime get
   * every event. Default `'info'`. Environment: `CLUSTER_LOG_LEVEL`.
   */
  level?: LogLevel | 'silent' | undefined;
  /**
   * Gets each line instead of the standard streams, without colours and without a line break at its
   * end. It is called in the primary alone, or with `workers: 0` in the one process there is. It
   * runs on the event loop that supervises, so it must not block; and the process exits after its
   * last line, so it should write at once. If it throws or rejects, its line is lost, and the first
   * such error is told on standard error. Two kinds of lines do not come here: an option or an
   * address that is wrong ends the start before the function is used, and the line that counts
   * lost output stands in the stream that has lost it. Default: the standard streams.
   */
  write?: ((line: string, level: LogLevel) => void) | undefined;
}

/** {@link LogOptions} in force. */
export interface ResolvedLogOptions {
  readonly format: LogFormat;
  readonly level: LogLevel | 'silent';
  readonly write: LogOptions['write'];
}
