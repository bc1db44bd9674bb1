import { oneLine } from '../errors/index.js';
import { reportError } from '../ipc/index.js';
import { LOG_LEVELS, type ResolvedLogOptions } from '../options/index.js';
import type { ClusterEventName, ClusterEventMap, EmitEvent } from './event-map.js';
import { describeEvent } from './describe-event.js';
import { lineFormat, type LogEntry, type Terminal } from './formats/index.js';
import { guardWrite } from './guard-write.js';

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
 * or else to the stream that the format uses for the level of the event.
 *
 * @param edit changes the lines.
 */
export function createEventLog(
  log: ResolvedLogOptions,
  streams: LogStreams = { out: process.stdout, err: process.stderr },
  edit: (line: string) => string = (line) => line,
): EmitEvent {
  const format = lineFormat(log.format);
  const write =
    log.write &&
    guardWrite(log.write, (thrown) => {
      const message = 'log.write failed, and its line is lost; this is said once';
      const entry = entryOf('warning', { message, error: reportError(thrown) });
      streams.err.write(`${format.line(entry, streams.err)}\n`);
    });
  return (name, event) => {
    const entry = entryOf(name, event);
    if (!isWritten(entry, log)) return;
    if (write) return write(edit(format.line(entry, undefined)), entry.level);
    const stream = streams[format.streams[entry.level]];
    stream.write(`${edit(format.line(entry, stream))}\n`);
  };
}

type FormatEvent = <N extends ClusterEventName>(
  name: N,
  event: ClusterEventMap[N],
  stream: Terminal,
) => string;

/** Turns an event into the line for a stream. The line is empty if the event is below the log level. */
export function createEventFormat(log: Pick<ResolvedLogOptions, 'format' | 'level'>): FormatEvent {
  const format = lineFormat(log.format);
  return (name, event, stream) => {
    const entry = entryOf(name, event);
    return isWritten(entry, log) ? `${format.line(entry, stream)}\n` : '';
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
