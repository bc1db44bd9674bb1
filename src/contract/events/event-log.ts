import { oneLine } from '../errors/index.js';
import { reportError } from '../errors/error-report.js';
import { LOG_LEVELS, type LogOptions, type ResolvedLogOptions } from '../options/log.js';
import type { ClusterEventName, ClusterEventMap, EmitEvent } from './event-map.js';
import { describeEvent } from './describe-event.js';
import { formatLine, type LogEntry, type Terminal } from './line-format.js';

interface LogStream extends Terminal {
  write(text: string): unknown;
}

/** The streams to which lines are written: guarded streams, a test's streams, or the standard streams. */
export interface LogStreams {
  readonly out: LogStream;
  readonly err: LogStream;
}

/**
 * Writes each event at or above the log level as one line. The line goes to the user's `log.write`,
 * or else to standard output (`info`) or standard error.
 *
 * @param edit changes the lines.
 */
export function createEventLog(
  log: ResolvedLogOptions,
  streams: LogStreams = { out: process.stdout, err: process.stderr },
  edit: (line: string) => string = (line) => line,
): EmitEvent {
  const { format } = log;
  const write =
    log.write &&
    guardWrite(log.write, (thrown) => {
      const message = 'log.write failed, and its line is lost; this is said once';
      const entry = entryOf('warning', { message, error: reportError(thrown) });
      streams.err.write(`${formatLine(format, entry, streams.err)}\n`);
    });
  return (name, event) => {
    const entry = entryOf(name, event);
    if (!isWritten(entry, log)) return;
    if (write) return write(edit(formatLine(format, entry)), entry.level);
    const stream = entry.level === 'info' ? streams.out : streams.err;
    stream.write(`${edit(formatLine(format, entry, stream))}\n`);
  };
}

type Write = NonNullable<LogOptions['write']>;

/**
 * Wraps the user's `log.write` so that its errors do not end the process.
 *
 * @param tell is called with the first error only: later errors would be the same for each line.
 */
function guardWrite(write: Write, tell: (error: unknown) => void): Write {
  let told = false;
  const threw = (error: unknown): void => {
    if (told) return;
    told = true;
    tell(error);
  };
  return (line, level) => {
    try {
      const result: unknown = write(line, level);
      if (result instanceof Promise) result.catch(threw);
    } catch (error) {
      threw(error);
    }
  };
}

type FormatEvent = <N extends ClusterEventName>(
  name: N,
  event: ClusterEventMap[N],
  stream: Terminal,
) => string;

/** Turns an event into the line for a stream. The line is empty if the event is below the log level. */
export function createEventFormat(log: Pick<ResolvedLogOptions, 'format' | 'level'>): FormatEvent {
  return (name, event, stream) => {
    const entry = entryOf(name, event);
    return isWritten(entry, log) ? `${formatLine(log.format, entry, stream)}\n` : '';
  };
}

/** `failed` is logged at every level, because no other line says why the cluster gives up. */
function isWritten({ name, level }: LogEntry, log: Pick<ResolvedLogOptions, 'level'>): boolean {
  return name === 'failed' || LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(log.level);
}

function entryOf<N extends ClusterEventName>(name: N, event: ClusterEventMap[N]): LogEntry {
  const { level, text } = describeEvent(name, event);
  return { name, event, level, text: oneLine(text) };
}
