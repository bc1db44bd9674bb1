import { styleText } from 'node:util';
import { clean, oneLine } from '../errors/index.js';
import { callSafely, reportError } from '../errors/error-report.js';
import {
  LOG_LEVELS,
  type LogFormat,
  type LogLevel,
  type LogOptions,
  type ResolvedLogOptions,
} from '../options/index.js';
import type { WorkerIdentity } from '../snapshot/index.js';
import type { ClusterEventMap, ClusterEventName, EmitEvent } from './events.js';
import { describeEvent } from './lines.js';

/** The property of a stream that decides whether a line has colours. */
type Terminal = Pick<NodeJS.WriteStream, 'isTTY'>;

interface LogStream extends Terminal {
  write(text: string): unknown;
}

/**
 * Writes each event at or above the log level as one line. The line goes to the user's `log.write`,
 * or else to standard output (`info`) or standard error.
 *
 * @param streams guarded streams, a test's streams, or the standard streams.
 */
export function createEventLog(
  log: ResolvedLogOptions,
  streams: { readonly out: LogStream; readonly err: LogStream } = {
    out: process.stdout,
    err: process.stderr,
  },
): EmitEvent {
  const write = log.write && guardWrite(log.write, log.format, streams.err);
  return (name, event) => {
    const level = describeEvent(name, event)?.level;
    // `failed` is logged at every level, because no other line says why the cluster gives up.
    if (level === undefined || (name !== 'failed' && !isShown(level, log))) return;
    if (write) return write(formatLine(log.format, name, event), level);
    const stream = level === 'info' ? streams.out : streams.err;
    stream.write(`${formatLine(log.format, name, event, stream)}\n`);
  };
}

/** The line of a warning for a stream, with a line break. It is empty if the log has no warnings. */
export function warningLine(
  log: Pick<ResolvedLogOptions, 'format' | 'level'>,
  warning: ClusterEventMap['warning'],
  stream: Terminal,
): string {
  return isShown('warn', log) ? `${formatLine(log.format, 'warning', warning, stream)}\n` : '';
}

function isShown(level: LogLevel, log: Pick<ResolvedLogOptions, 'level'>): boolean {
  return LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(log.level);
}

type Write = NonNullable<LogOptions['write']>;

/** Wraps the user's `log.write` so that its errors do not end the process. The first one is written to `err`. */
function guardWrite(write: Write, format: LogFormat, err: LogStream): Write {
  let reported = false;
  const failed = (thrown: unknown): void => {
    if (reported) return; // it would be the same for each line
    reported = true;
    const message = 'log.write failed and the line was lost; further failures are not logged';
    const warning = { message, error: reportError(thrown) };
    err.write(`${formatLine(format, 'warning', warning, err)}\n`);
  };
  return (line, level) => callSafely(() => write(line, level), failed);
}

const COLOURS = { info: 'green', warn: 'yellow', error: 'red' } as const;

/**
 * Formats an event as a line, without its line break. A line of text has colours only on a terminal,
 * and only if `NO_COLOR` is not set. A line of JSON has every field of the event.
 *
 * @param stream the stream that gets the line. Without a stream the line has no colours.
 */
function formatLine<N extends ClusterEventName>(
  format: LogFormat,
  name: N,
  event: ClusterEventMap[N],
  stream?: Terminal,
): string {
  const { level, text } = describeEvent(name, event)!;
  const time = new Date().toISOString();
  if (format === 'json') return jsonLine({ time, level, event: name }, event, oneLine(text));
  const label = `${level.padEnd(5)} [cluster]`;
  if (stream?.isTTY !== true || process.env['NO_COLOR']) return `${time} ${label} ${oneLine(text)}`;
  // The code above has checked the stream; styleText() would only check standard output.
  const paint = (colour: 'dim' | (typeof COLOURS)[LogLevel], part: string) =>
    styleText(colour, part, { validateStream: false });
  return `${paint('dim', time)} ${paint(COLOURS[level], label)} ${oneLine(text)}`;
}

function jsonLine(head: object, event: object, message: string): string {
  const { worker, ...fields } = event as { readonly worker?: WorkerIdentity };
  const identity = worker && { worker: worker.slot, gen: worker.generation, pid: worker.pid };
  // The field `message` of a warning lacks the worker's identity and the error.
  return JSON.stringify({ ...head, ...fields, message, ...identity }, (_key, value: unknown) =>
    typeof value === 'string' ? clean(value) : value,
  );
}
