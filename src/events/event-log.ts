import { styleText } from 'node:util';
import { clean, oneLine } from '../errors/index.js';
import type { LogFormat } from '../options/index.js';
import type { WorkerIdentity } from '../snapshot/index.js';
import type { ClusterEventName, ClusterEvents, EmitEvent } from './cluster-events.js';
import { describeEvent, type LogLevel } from './describe-event.js';

type Colour = Parameters<typeof styleText>[0];

const COLOURS: Readonly<Record<LogLevel, Colour>> = {
  info: 'green',
  warn: 'yellow',
  error: 'red',
};

type Terminal = Pick<NodeJS.WriteStream, 'isTTY'>;

interface LogStream extends Terminal {
  write(text: string): unknown;
}

/** Where lines go: the process's own streams, unless they are guarded, or a test looks. */
export interface LogStreams {
  readonly out: LogStream;
  readonly err: LogStream;
}

/**
 * Writes each event as one line: `info` to standard output, the rest to
 * standard error. Colours only on a terminal, and not where `NO_COLOR` is set.
 */
export function createEventLog(
  format: LogFormat,
  streams: LogStreams = { out: process.stdout, err: process.stderr },
): EmitEvent {
  return (name, event) => {
    const stream = describeEvent(name, event).level === 'info' ? streams.out : streams.err;
    stream.write(formatEvent(format, name, event, stream));
  };
}

/** An event as a line for that stream. */
export function formatEvent<N extends ClusterEventName>(
  format: LogFormat,
  name: N,
  event: ClusterEvents[N],
  stream: Terminal,
): string {
  const { level, text } = describeEvent(name, event);
  return `${format === 'json' ? jsonLine(name, event, level, text) : textLine(level, text, stream)}\n`;
}

function textLine(level: LogLevel, text: string, stream: Terminal): string {
  const time = new Date().toISOString();
  const line = oneLine(text);
  if (stream.isTTY !== true || process.env['NO_COLOR']) {
    return `${time} ${level.padEnd(5)} [cluster] ${line}`;
  }
  // The stream has been looked at above; styleText() would look at standard output alone.
  const paint = (colour: Colour, part: string) =>
    styleText(colour, part, { validateStream: false });
  return `${paint('dim', time)} ${paint(COLOURS[level], `${level.padEnd(5)} [cluster]`)} ${line}`;
}

function jsonLine<N extends ClusterEventName>(
  event: N,
  payload: ClusterEvents[N],
  level: LogLevel,
  text: string,
): string {
  const { worker, ...rest } = payload as { worker?: WorkerIdentity };
  const line = {
    time: new Date().toISOString(),
    level,
    event,
    // After the event's own fields: a warning has a message too, without identity and error.
    ...rest,
    message: oneLine(text),
    ...(worker && { worker: worker.slot, gen: worker.generation, pid: worker.pid }),
  };
  return JSON.stringify(line, (_key, value: unknown) =>
    typeof value === 'string' ? clean(value) : value,
  );
}
