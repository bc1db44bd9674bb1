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

/** The streams that get the lines: guarded ones, a test's own, or the process's own. */
export interface LogStreams {
  readonly out: LogStream;
  readonly err: LogStream;
}

/** Writes each event that reaches the log level as one line, through the user's function or to the stream that the format has for its level. */
export function createEventLog(
  log: ResolvedLogOptions,
  streams: LogStreams = { out: process.stdout, err: process.stderr },
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
    if (write) return write(format.line(entry, undefined), entry.level);
    const stream = streams[format.streams[entry.level]];
    stream.write(`${format.line(entry, stream)}\n`);
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

/** The reason why a cluster gives up is logged at every level: nothing else would tell it. */
function isWritten({ name, level }: LogEntry, log: Pick<ResolvedLogOptions, 'level'>): boolean {
  return name === 'failed' || LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(log.level);
}

function entryOf<N extends ClusterEventName>(name: N, event: ClusterEventMap[N]): LogEntry {
  const { level, text } = describeEvent(name, event);
  return { name, event, level, text: oneLine(text) };
}
