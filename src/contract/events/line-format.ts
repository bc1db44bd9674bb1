import { styleText } from 'node:util';
import { clean } from '../errors/index.js';
import type { LogFormat, LogLevel } from '../options/index.js';
import type { WorkerIdentity } from '../snapshot/index.js';
import type { ClusterEventName, ClusterEventMap } from './event-map.js';

export interface LogEntry {
  readonly name: ClusterEventName;
  readonly event: ClusterEventMap[ClusterEventName];
  readonly level: LogLevel;
  /** The event in words, on one line, without control characters. */
  readonly text: string;
}

/** The property of a stream that decides whether a line has colours. */
export type Terminal = Pick<NodeJS.WriteStream, 'isTTY'>;

type Colour = Parameters<typeof styleText>[0];

const COLOURS: Readonly<Record<LogLevel, Colour>> = {
  info: 'green',
  warn: 'yellow',
  error: 'red',
};

/**
 * Formats an entry as a line, without its line break.
 *
 * @param stream the stream that gets the line. Without a stream the line has no colours.
 */
export function formatLine(format: LogFormat, entry: LogEntry, stream?: Terminal): string {
  return format === 'json' ? jsonLine(entry) : textLine(entry, stream);
}

/** Text with colours only on a terminal, and only if `NO_COLOR` is not set. */
function textLine({ level, text }: LogEntry, stream: Terminal | undefined): string {
  const time = new Date().toISOString();
  if (stream?.isTTY !== true || process.env['NO_COLOR']) {
    return `${time} ${level.padEnd(5)} [cluster] ${text}`;
  }
  // The code above has checked the stream; styleText() would only check standard output.
  const paint = (colour: Colour, part: string) =>
    styleText(colour, part, { validateStream: false });
  return `${paint('dim', time)} ${paint(COLOURS[level], `${level.padEnd(5)} [cluster]`)} ${text}`;
}

/** One JSON object with every field of the event. Its texts are cut if too long, and cleaned of control characters. */
function jsonLine({ name, event, level, text }: LogEntry): string {
  const { worker, ...rest } = event as { worker?: WorkerIdentity };
  const line = {
    time: new Date().toISOString(),
    level,
    event: name,
    // Comes before `message`, because a warning has a field of that name, without the worker's
    // identity and the error.
    ...rest,
    message: text,
    ...(worker && { worker: worker.slot, gen: worker.generation, pid: worker.pid }),
  };
  return JSON.stringify(line, (_key, value: unknown) =>
    typeof value === 'string' ? clean(value) : value,
  );
}
