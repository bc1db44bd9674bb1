import { stripVTControlCharacters, styleText } from 'node:util';
import type { LogFormat } from '../options/index.js';
import type { WorkerIdentity } from '../snapshot/index.js';
import type { ClusterEventName, ClusterEvents, EmitEvent } from './cluster-events.js';
import { describeEvent, type LogLevel } from './describe-event.js';

const MAX_LINE_LENGTH = 4_096;

const COLOURS: Readonly<Record<LogLevel, Parameters<typeof styleText>[0]>> = {
  info: 'green',
  warn: 'yellow',
  error: 'red',
};

/** Where lines go: the process's own streams, unless a test looks. */
export interface LogStreams {
  readonly out: Pick<NodeJS.WriteStream, 'write' | 'isTTY'>;
  readonly err: Pick<NodeJS.WriteStream, 'write' | 'isTTY'>;
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
    const { level, text } = describeEvent(name, event);
    const stream = level === 'info' ? streams.out : streams.err;
    stream.write(
      `${format === 'json' ? jsonLine(name, event, level, text) : textLine(level, text, stream)}\n`,
    );
  };
}

function textLine(level: LogLevel, text: string, stream: LogStreams['out']): string {
  const time = new Date().toISOString();
  const line = oneLine(text);
  if (stream.isTTY !== true || process.env['NO_COLOR']) {
    return `${time} ${level.padEnd(5)} [cluster] ${line}`;
  }
  return `${styleText('dim', time)} ${styleText(COLOURS[level], `${level.padEnd(5)} [cluster]`)} ${line}`;
}

function jsonLine<N extends ClusterEventName>(
  event: N,
  payload: ClusterEvents[N],
  level: LogLevel,
  text: string,
): string {
  const { worker, ...rest } = payload as { worker?: WorkerIdentity };
  return JSON.stringify({
    time: new Date().toISOString(),
    level,
    event,
    message: oneLine(text),
    ...(worker && { worker: worker.slot, gen: worker.generation, pid: worker.pid }),
    ...rest,
  });
}

/** Text may come from an app's error: no line break and no control character of it gets through. */
function oneLine(text: string): string {
  return stripVTControlCharacters(text)
    .replace(/\s*[\r\n]+\s*/g, ' | ')
    .replace(/\p{Cc}/gu, '')
    .slice(0, MAX_LINE_LENGTH);
}
