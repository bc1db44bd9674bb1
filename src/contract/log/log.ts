import { styleText } from 'node:util';
import { clean, oneLine } from '../errors/errors.js';
import { callSafely, type ErrorReport, reportError } from '../errors/error-report.js';
import type { BlockedRequest, BlockReport, DrainReport } from '../messages.js';
import {
  LOG_LEVELS,
  type LogFormat,
  type LogLevel,
  type LogOptions,
  type ResolvedLogOptions,
} from '../options/log.js';
import { formatIdentity, SHUTTING_DOWN, type WorkerIdentity } from '../snapshot/types.js';
import type { ClusterEventMap, ClusterEventName, EmitEvent } from './events.js';

interface Line {
  readonly level: LogLevel;
  readonly text: string;
}

const info = (text: string): Line => ({ level: 'info', text });
const warn = (text: string): Line => ({ level: 'warn', text });
const error = (text: string): Line => ({ level: 'error', text });

const STOPPING = { drain: 'draining', destroy: 'destroying open connections', kill: 'killing' };

const LINES: {
  readonly [N in ClusterEventName]: ((event: ClusterEventMap[N]) => Line) | undefined;
} = {
  starting: ({ workers, pid, node }) =>
    info(`starting ${counted(workers)} (primary pid=${pid}, Node ${node})`),
  listening: (event) =>
    info(
      event.url === null
        ? `the first of ${counted(event.workers)} is ready, ${formatAddress(event)}`
        : formatAddress(event, `workers=${event.workers}, `),
    ),
  started: (event) => {
    const { ready, workers, durationMs, fastestMs, slowestMs } = event;
    const range = ready > 1 ? ` (${formatRange(fastestMs, slowestMs)})` : '';
    return (ready < workers ? warn : info)(
      `${ready}/${counted(workers)} ready in ${formatMs(durationMs)}${range}, ${formatAddress(event)}`,
    );
  },
  'worker-ready': ({ worker, bootMs }) =>
    info(`${formatIdentity(worker)} ready in ${formatMs(bootMs)}`),
  'worker-died': ({ worker, cause, detail, uptimeMs, error: reported, requests, blocked }) =>
    error(
      `${formatIdentity(worker)} died: ${detail} (cause=${cause}, uptime=${formatMs(uptimeMs)})` +
        `${formatRequests(requests)}${formatStack(blocked)}${formatError(reported)}`,
    ),
  'worker-failing': ({ worker, error: reported, requests }) =>
    error(
      `${formatIdentity(worker)} failing, draining: uncaught error${formatRequests(requests)}${formatError(reported)}`,
    ),
  'worker-replacing': ({ worker, cause, detail }) =>
    info(`${formatIdentity(worker)} being replaced (cause=${cause}): ${detail}`),
  'worker-restarting': ({ slot, delayMs, failures, degraded }) =>
    (degraded ? error : warn)(
      `worker=${slot} restarting in ${Math.round(delayMs)} ms` +
        `${failures > 1 ? ` (${failures} failures in a row)` : ''}` +
        `${degraded ? ' (crash loop: degraded)' : ''}`,
    ),
  'worker-draining': ({ worker, cause }) =>
    info(`${formatIdentity(worker)} draining (cause=${cause})`),
  'worker-stopped': ({ worker, cause, drainMs, problem, ...forced }) => {
    const loss = lossOf(forced);
    const text =
      `${formatIdentity(worker)} stopped after ${formatMs(drainMs)} (cause=${cause})` +
      (loss === undefined ? '' : `; ${loss}`);
    if (problem !== null) return error(`${text}: ${problem}`);
    return loss === undefined ? info(text) : warn(text);
  },
  'worker-exit': undefined, // the preceding event has a line
  leader: undefined, // not for the log, only for listeners
  'reload-started': ({ generation, reason }) => info(`${reason}: reload gen=${generation} started`),
  'reload-reverting': ({ generation, to, reason }) =>
    error(`rolling back reload gen=${generation} to gen=${to}: ${reason}`),
  'reload-ended': ({ outcome, generation, reason, durationMs }) => {
    const text = `reload gen=${generation} ${outcome}`;
    if (outcome === 'completed') return info(`${text} in ${formatMs(durationMs)}`);
    const late = `${text} after ${formatMs(durationMs)}`;
    if (reason === SHUTTING_DOWN) return info(`${late}: ${reason}`);
    return error(
      `${late}${outcome === 'aborted' ? ', the previous workers keep serving' : ''}: ${reason}`,
    );
  },
  scaling: ({ from, to, reason }) => info(`${reason}: scaling from ${from} to ${counted(to)}`),
  stopping: ({ reason, workers, force }) => {
    const of = force === 'destroy' ? ' of' : '';
    // With `workers: 0` there are no workers, only one process.
    const text = `${reason}: ${STOPPING[force]}${workers === 0 ? '' : `${of} ${counted(workers)}`}`;
    return force === 'drain' ? info(text) : warn(text);
  },
  stopped: ({ exitCode, uptimeMs }) =>
    info(`stopped (exit code ${exitCode}, uptime ${formatMs(uptimeMs)})`),
  failed: ({ message, exitCode, error: reported }) =>
    error(`giving up (exit code ${exitCode}): ${message}${formatError(reported)}`),
  warning: ({ message, worker, error: reported }) =>
    warn(`${worker ? `${formatIdentity(worker)} ` : ''}${message}${formatError(reported)}`),
};

export const EVENT_NAMES = Object.keys(LINES) as readonly ClusterEventName[];

/** The line of an event; `undefined` if the event is not logged. */
export function describeEvent<N extends ClusterEventName>(
  name: N,
  event: ClusterEventMap[N],
): Line | undefined {
  return LINES[name]?.(event);
}

/** Describes what a drain destroyed; `undefined` if it destroyed nothing. */
export function lossOf({
  destroyedConnections: connections,
  abortedRequests: requests,
  destroyedWebSockets,
}: Omit<DrainReport, 'hookError'>): string | undefined {
  if (connections === 0 && requests === 0) return undefined;
  const more = destroyedWebSockets > 0 ? ` and ${counted(destroyedWebSockets, 'WebSocket')}` : '';
  return `the drain destroyed ${counted(connections, 'connection')} with ${counted(requests, 'request')}${more}`;
}

function counted(count: number, noun = 'worker'): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function formatAddress(
  { url, balancing, ports, endpoints, adminUrl }: ClusterEventMap['listening'],
  more = '',
): string {
  if (url === null) {
    return `no HTTP server${adminUrl === null ? '' : ` (admin: ${adminUrl})`}`;
  }
  return (
    `listening on ${url}${ports.length > 1 ? ` to ${ports.at(-1)}` : ''} (${more}balancing=${balancing}` +
    `${endpoints.length > 0 ? `, endpoints: ${endpoints.join(' ')}` : ''}` +
    `${adminUrl === null ? '' : `, admin: ${adminUrl}`})`
  );
}

/** Maximum number of frames of a blocked event loop in a text line; a JSON line has all frames. */
const FRAMES_SHOWN = 5;

/** Maximum number of requests in a text line; a JSON line has all of them. */
const REQUESTS_SHOWN = 3;

function formatRequests(requests: readonly BlockedRequest[]): string {
  const shown = requests
    .slice(0, REQUESTS_SHOWN)
    .map(({ method, path, forMs }) => `${method} ${path} for ${formatMs(forMs)}`);
  return shown.length === 0 ? '' : `; in flight: ${shown.join(', ')}`;
}

function formatStack(report: BlockReport | null): string {
  if (report === null) return '';
  const frames = report.frames.slice(0, FRAMES_SHOWN).join(' < ');
  return frames === '' ? '; no stack' : `; blocked ${frames}`;
}

/** The error and one frame of its stack: the first frame outside Node, or else the first frame. */
function formatError(report: ErrorReport | null | undefined): string {
  if (!report) return '';
  if (report.repeated) return `: the same error (${report.name})`;
  const frames = report.stack?.split('\n').filter((line) => /^\s+at /.test(line)) ?? [];
  const frame = frames.find((line) => !/\bnode:/.test(line)) ?? frames[0];
  return `: ${report.name}: ${report.message}${frame ? ` ${frame.trim()}` : ''}`;
}

function formatMs(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

/** Formats both times in the unit that suits the longer time. */
function formatRange(fromMs: number, toMs: number): string {
  const from = toMs < 1_000 ? Math.round(fromMs) : (fromMs / 1_000).toFixed(1);
  return `${from}–${formatMs(toMs)}`;
}

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

/** A warning's line for a stream, with a line break. Empty if the log level excludes warnings. */
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

/** Wraps the user's `log.write` so that its errors do not end the process. Only the first error is reported. */
function guardWrite(write: Write, format: LogFormat, err: LogStream): Write {
  let reported = false;
  const failed = (thrown: unknown): void => {
    if (reported) return; // later lines usually fail for the same reason
    reported = true;
    const message = 'log.write failed and the line was lost; further failures are not logged';
    const warning = { message, error: reportError(thrown) };
    err.write(`${formatLine(format, 'warning', warning, err)}\n`);
  };
  return (line, level) => callSafely(() => write(line, level), failed);
}

const COLOURS = { info: 'green', warn: 'yellow', error: 'red' } as const;

/**
 * Formats an event as a line, without a line break. A text line has colours only on a terminal, and
 * only if `NO_COLOR` is not set. A JSON line has every field of the event.
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
  // The stream is already checked; styleText() would check only standard output.
  const paint = (colour: 'dim' | (typeof COLOURS)[LogLevel], part: string) =>
    styleText(colour, part, { validateStream: false });
  return `${paint('dim', time)} ${paint(COLOURS[level], label)} ${oneLine(text)}`;
}

function jsonLine(head: object, event: object, message: string): string {
  const { worker, ...fields } = event as { readonly worker?: WorkerIdentity };
  const identity = worker && { worker: worker.slot, gen: worker.generation, pid: worker.pid };
  // A warning's own `message` field lacks the worker's identity and the error.
  return JSON.stringify({ ...head, ...fields, message, ...identity }, (_key, value: unknown) =>
    typeof value === 'string' ? clean(value) : value,
  );
}
