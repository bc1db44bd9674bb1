import { STAT_NAMES } from '../snapshot/stats.js';
import * as v from 'valibot';
import { MAX_WORKERS } from '../options/schema.js';
import { MAX_METRICS_BODY_LENGTH, type WorkerStats } from '../snapshot/index.js';
import { cutText, type ErrorReport } from './error-report.js';

/** The maximum numbers of entries in a `BlockReport`. A message with more is refused. */
export const MAX_BLOCKED_REQUESTS = 10;
export const MAX_FRAMES = 20;

/** The maximum number of events that a worker can subscribe to. No version has so many events. */
const MAX_SUBSCRIPTIONS = 100;

const amount = v.pipe(v.number(), v.finite(), v.minValue(0));
const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
/** A long text is cut, not refused, because its beginning is useful. */
const text = v.pipe(v.string(), v.transform(cutText));
const workerCount = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MAX_WORKERS));
/** The primary starts a thread only for these packages. */
const packageName = v.pipe(text, v.regex(/^@nestjs-cluster\/[a-z][a-z.-]{0,39}$/));
const lines = (max: number) => v.pipe(v.array(text), v.maxLength(max));
const body = v.pipe(v.string(), v.maxLength(MAX_METRICS_BODY_LENGTH));
/** A measurement that counts as 0 if another version of this package leaves it out. */
const measured = v.fallback(amount, 0);
const counted = v.fallback(count, 0);
const maybe = v.fallback(v.optional(v.boolean()), undefined);

/** Each number is checked separately. If a number is missing or wrong, its last known value stays. */
const stats = v.pipe(
  v.fallback(v.optional(v.record(v.string(), v.unknown()), {}), {}),
  v.transform((given): Partial<WorkerStats> => {
    const known = STAT_NAMES.filter((name) => v.is(amount, given[name]));
    return Object.fromEntries(known.map((name) => [name, given[name]]));
  }),
);

const requests = v.pipe(
  v.array(v.object({ method: text, path: text, forMs: amount })),
  v.maxLength(MAX_BLOCKED_REQUESTS),
);
const frames = lines(MAX_FRAMES);
const error: v.GenericSchema<unknown, ErrorReport> = v.object({
  name: text,
  message: text,
  stack: v.optional(text),
  code: v.optional(text),
});

/** The result of a drain, with the numbers of connections and requests that were ended by force. */
const drainReport = v.object({
  /** Connections destroyed at the deadline. */
  destroyedConnections: counted,
  /** Requests that were in flight on the destroyed connections. */
  abortedRequests: counted,
  /** WebSockets among the destroyed connections. They were asked to close and did not. */
  destroyedWebSockets: counted,
  /** Why `app.close()` failed; `null` if it did not fail. */
  hookError: v.optional(v.nullable(text), null),
});

/** The load of a worker since its last report. */
const load = {
  /** Responses finished since the last report. */
  requests: count,
  /** Number of open connections that have served a response. Their clients can be asked to connect again. */
  connections: count,
  /** Share of the time that the event loop was busy, 0..1. */
  utilization: amount,
};

/**
 * The messages from a worker to the primary. Node's channel is shared with the app and its
 * libraries, so every message carries the name of this package and a version. Other messages belong
 * to somebody else or are wrong, and are dropped.
 *
 * Workers run the app's code, so their messages are checked field by field. In a rolling reload
 * they may also run another version of this package. So an unknown field is ignored, and a field
 * that only informs may be missing.
 */
export const workerMessageSchema = v.variant('type', [
  /** The app is initialised, and the worker asks for the socket to listen on. */
  v.object({ type: v.literal('listen-request') }),
  /** The worker accepts requests. */
  v.object({
    type: v.literal('ready'),
    /** URL of the app; `null` without an HTTP server. */
    url: v.nullish(text),
    /** Paths that the module serves. */
    endpoints: v.optional(lines(16)),
    /** Workers that must be ready for the cluster to be up. */
    minReady: v.optional(v.union([v.literal('all'), amount])),
    /** Whether the worker has threads and will answer `verify`. */
    verifiable: maybe,
  }),
  /** The app could not be started; the process ends next. */
  v.object({
    type: v.literal('boot-failed'),
    /** Whether the app failed while it began to listen. */
    listening: maybe,
    error,
  }),
  /**
   * An uncaught error. The worker drains and ends, or, with `abort`, ends at once. `requests`: the
   * request of the error, or else the requests in flight, the newest first.
   */
  v.object({ type: v.literal('fatal'), error, abort: v.boolean(), requests }),
  /** Something called `process.exit()`. `requests` as with `fatal`. */
  v.object({ type: v.literal('exiting'), requests }),
  /** From the watchdog, over a pipe of its own: the event loop is blocked. See `BlockReport`. */
  v.object({ type: v.literal('blocked'), forMs: amount, requests, frames }),
  /** From the watchdog: the event loop is no longer blocked. */
  v.object({ type: v.literal('resumed') }),
  /** From the watchdog: answers the request `stack`. */
  v.object({
    type: v.literal('stack'),
    id: count,
    /** How long the event loop has been blocked, in ms; `null` if it is not blocked. */
    blockedForMs: v.nullable(amount),
    requests,
    frames,
    /** Whether the main thread answered. It cannot answer while it runs native code. */
    answered: v.boolean(),
  }),
  /** From the watchdog: answers the request `record`. `problem`: why the file could not be written. */
  v.object({ type: v.literal('recorded'), id: count, problem: v.nullable(text) }),
  /** Answers `check`. `detail`: the problem in words. */
  v.object({
    type: v.literal('checked'),
    id: count,
    healthy: v.boolean(),
    detail: v.optional(v.nullable(text), null),
  }),
  /** Answers `verify` with the error, if there is one. */
  v.object({ type: v.literal('verified'), error: v.nullable(error) }),
  v.object({ type: v.literal('reload-request'), id: count }),
  v.object({ type: v.literal('scale-request'), id: count, workers: workerCount }),
  v.object({ type: v.literal('restart-request'), id: count, slot: count }),
  /** The worker has jobs that only one worker may run, and asks for a message when it becomes the leader. */
  v.object({ type: v.literal('lead-request') }),
  /** Answers `lead`. */
  v.object({ type: v.literal('leads'), seq: count }),
  /** The worker no longer leads. It begins no job that is due after `at` (ms of the machine's clock). */
  v.object({ type: v.literal('resigned'), at: amount }),
  /** A job has begun that must run only once in the life of the cluster. */
  v.object({ type: v.literal('job-begun'), job: text }),
  /** A warning for the operator, on one line. */
  v.object({ type: v.literal('warning'), message: text }),
  v.object({
    type: v.literal('pong'),
    seq: v.fallback(v.optional(count), undefined),
    stats,
    debugged: maybe,
  }),
  /** Answers `report-load`. */
  v.object({ type: v.literal('load'), ...load }),
  /** The worker itself received a signal to end. With `closed`, the app closes itself without a signal. */
  v.object({ type: v.literal('leaving'), closed: maybe }),
  v.object({ type: v.literal('drained'), report: drainReport }),
  v.object({ type: v.literal('snapshot-request'), id: count, stats }),
  /**
   * Asks for the metrics of all workers. The metrics of the asking worker come with the request.
   * `ageMs`: time since `body` was serialised. Above 0 if serialising takes too long and an earlier
   * body is sent.
   */
  v.object({ type: v.literal('collect-request'), id: count, stats, ageMs: measured, body }),
  /** Metrics of this worker. `asked` = they answer `collect`; otherwise the worker sends them regularly. */
  v.object({ type: v.literal('metrics'), asked: v.boolean(), stats, ageMs: measured, body }),
  /** Asks for the address of a package's thread. The first request makes the primary start the thread. */
  v.object({ type: v.literal('thread-request'), id: count, name: packageName }),
  /** From now on the primary sends only these events of the cluster to the worker. */
  v.object({ type: v.literal('subscribe'), events: lines(MAX_SUBSCRIPTIONS) }),
]);

export type WorkerMessage = DeepReadonly<v.InferOutput<typeof workerMessageSchema>>;
export type DrainReport = Readonly<v.InferOutput<typeof drainReport>>;
export type LoadReport = Readonly<Record<keyof typeof load, number>>;

type DeepReadonly<T> = { readonly [K in keyof T]: DeepReadonly<T[K]> };
