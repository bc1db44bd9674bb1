import * as v from 'valibot';
import type { ErrorReport } from './errors/error-report.js';
import { MAX_WORKERS } from './options/checks.js';
import type {
  ClusterSnapshot,
  CollectedMetrics,
  Recording,
  ReloadResult,
  RestartResult,
  RetireCause,
} from './snapshot/types.js';
import type { WorkerStats } from './stats.js';

/*
 * All messages between a primary and its workers, over Node's IPC channel as JSON. A worker's
 * watchdog has its own pipe, one JSON object per line, which works even while the worker is blocked.
 *
 *     the worker sends                  the primary answers
 *     listen-request                    listen or listen-refused
 *     lead-request                      lead, whenever the worker leads
 *     subscribe                         event, for each event from then on
 *     reload-request, scale-request,
 *     restart-request, snapshot-request,
 *     collect-request, thread-request   answer
 *
 *     the primary sends                 the worker answers
 *     ping                              pong
 *     lead                              leads
 *     check                             checked
 *     verify                            verified
 *     report-load                       load
 *     collect                           metrics
 *     drain                             drained, and ends
 *     stack, record                     stack, recorded, by its watchdog
 *
 * The channel is shared with the app and its libraries, so each message names this package and the
 * version of the protocol. A message of another version is refused as a whole, so increase the
 * version whenever a message changes. Both sides run this package, so only the numbers used in
 * calculations by the primary are validated.
 */
const ENVELOPE = { ns: 'nestjs-cluster', v: 1 } as const;

/** The type of {@link ENVELOPE}, for programs that copy the value because they load no modules. */
export type Envelope = typeof ENVELOPE;

/** The signal that the app's shutdown hooks receive if the process received no signal. */
export const LEAVE_SIGNAL = 'SIGTERM';

/** A request that may have ended or blocked a worker. */
export interface BlockedRequest {
  readonly method: string;
  /** The path without the query, which may hold secrets. */
  readonly path: string;
  readonly forMs: number;
}

/** A watchdog's report that its worker's event loop is blocked. */
export interface BlockReport {
  /** How long the event loop had been blocked at the time of the report, in ms. */
  readonly forMs: number;
  /** Requests in flight, newest first. */
  readonly requests: readonly BlockedRequest[];
  /** JavaScript frames, innermost first; empty if the inspector is not available. */
  readonly frames: readonly string[];
}

/** The address on which a worker listens. The primary's handle comes with this message. */
export type ListenTarget = (
  | { readonly kind: 'tcp'; readonly port: number; readonly host: string }
  | { readonly kind: 'unix'; readonly path: string }
) & {
  /** Whether systemd also holds the socket, so that the socket outlives this cluster. */
  readonly activated?: true;
};

const amount = v.pipe(v.number(), v.finite(), v.minValue(0));
const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
/** The schema of a field that is not validated. */
const as = <T>() => v.custom<T>(() => true);
const flag = v.optional(as<boolean>());

/** `WorkerHandle` validates each number. */
const stats = as<Partial<WorkerStats>>();

/** `body`: the serialised metrics. `ageMs`: their age, above 0 if serialising took too long and an earlier body is sent. */
const metrics = { stats, ageMs: amount, body: as<string>() };

const requests = as<BlockReport['requests']>();
const frames = as<BlockReport['frames']>();

/** The load of a worker since its last report. */
const load = {
  /** Number of finished responses. */
  requests: count,
  /** Number of open connections that have served a response. Their clients can be asked to reconnect. */
  connections: count,
  /** Share of time that the event loop was busy, 0..1. */
  utilization: amount,
};

/** The result of a drain: how many connections and requests did not end in time. */
const drain = {
  /** Connections destroyed at the deadline. */
  destroyedConnections: count,
  /** Requests that were in flight on the destroyed connections. */
  abortedRequests: count,
  /** WebSockets among the destroyed connections. They did not close when asked. */
  destroyedWebSockets: count,
  /** Why `app.close()` failed; `null` if it did not fail. */
  hookError: as<string | null>(),
};

/** The messages of a worker, with the schemas of their fields. */
const FROM_WORKER = {
  /** The app is initialised, and the worker asks for the socket to listen on. */
  'listen-request': {},
  /**
   * The worker accepts requests. `url` is `null` without an HTTP server. `endpoints`: the paths that
   * the module serves. `minReady`: workers that must be ready for the cluster to be up.
   * `verifiable`: whether the worker has threads and will answer `verify`.
   */
  ready: {
    url: v.optional(as<string | null>()),
    endpoints: v.optional(as<readonly string[]>()),
    minReady: v.optional(v.union([v.literal('all'), amount])),
    verifiable: flag,
  },
  /** The app failed to start, and the worker exits. `listening`: whether the app failed to listen. */
  'boot-failed': { listening: flag, error: as<ErrorReport>() },
  /**
   * An uncaught error. The worker drains and exits. `requests`: the request that caused the error, or
   * else the requests in flight, newest first.
   */
  fatal: { error: as<ErrorReport>(), requests },
  /** Something called `process.exit()`. */
  exiting: { requests },
  pong: { seq: count, stats, debugged: flag },
  checked: { healthy: as<boolean>(), detail: as<string | null>() },
  verified: { error: as<ErrorReport | null>() },
  load,
  /** The worker is ending: it received a signal or, with `closed`, its app closes itself. */
  leaving: { closed: flag },
  /** Hands over an idle connection, so that another worker serves it. The handle comes with this message. */
  connection: {},
  drained: { report: v.object(drain) },
  /** A warning for the operator, on one line. */
  warning: { message: as<string>() },
  /** Metrics of this worker. Sent as the answer to `collect`, and regularly, so that a crash loses little. */
  metrics,

  /** The worker has jobs that only one worker may run, and asks to be notified when it becomes the leader. */
  'lead-request': {},
  leads: { seq: count },
  /** The worker no longer leads. It begins no job that is due after `at` (ms of the machine's clock). */
  resigned: { at: amount },
  /** A job that must run only once in the life of the cluster has begun. */
  'job-begun': { job: as<string>() },

  'reload-request': { id: count },
  'scale-request': { id: count, workers: v.pipe(count, v.minValue(1), v.maxValue(MAX_WORKERS)) },
  'restart-request': { id: count, slot: count },
  'snapshot-request': { id: count, stats },
  /** Asks for the metrics of all workers. The worker's own metrics come with the request. */
  'collect-request': { id: count, ...metrics },
  /** Asks for the address of a package's thread. The first request makes the primary start the thread. */
  'thread-request': { id: count, name: as<string>() },
  /** From now on the primary sends only these events of the cluster to the worker. */
  subscribe: { events: as<readonly string[]>() },

  /** From the watchdog: the event loop is blocked. */
  blocked: { forMs: amount, requests, frames },
  /** From the watchdog: the event loop is no longer blocked. */
  resumed: {},
  /** `blockedForMs` is `null` if the event loop is not blocked. `answered` is false if the main thread runs native code. */
  stack: {
    id: count,
    blockedForMs: v.nullable(amount),
    requests,
    frames,
    answered: as<boolean>(),
  },
  /** `problem`: why the file could not be written. `top`: the largest allocations in a heap profile. */
  recorded: { id: count, problem: as<string | null>(), top: as<readonly string[]>() },
};

/** The results of a worker's requests. */
export interface Results {
  'reload-request': ReloadResult;
  'scale-request': ClusterSnapshot;
  'restart-request': RestartResult;
  'snapshot-request': ClusterSnapshot;
  'collect-request': CollectedMetrics;
  /** The path of the thread's socket. */
  'thread-request': string;
}

/** Why a request was refused. `address` is set if new workers could not listen on that address. */
export type Refusal = ErrorReport & { readonly address?: string | undefined };

interface FromPrimary {
  /** Listen on the handle that comes with this message. Without a handle, listen through node:cluster. */
  listen: { target: ListenTarget };
  /** The primary has no socket for the worker. */
  'listen-refused': { error: ErrorReport };
  /** Also listen on the handle that comes with this message: the socket of a slot without a worker. */
  adopt: { slot: number };
  /** Stop listening on the socket of `slot`, because that slot has a worker again. */
  release: { slot: number };
  /** Serve the connection whose handle comes with this message. */
  connection: {};
  ping: { seq: number };
  /** Check the app's health. */
  check: {};
  /** Check that a thread can load all its tasks. */
  verify: {};
  /**
   * Be the leader until `until`. Times are in ms of the machine's monotonic clock. Jobs that were
   * due before `since` belong to an earlier leader; `since` is `undefined` if there was none.
   * `done`: jobs that must run only once and have already begun.
   */
  lead: { seq: number; until: number; since?: number | undefined; done: readonly string[] };
  'report-load': {};
  /** Ask clients that cause this share of the load (0..1) to reconnect. */
  'give-away': { ratio: number };
  collect: {};
  /** Drain and exit. `signal`: the signal that the app's shutdown hooks receive. */
  drain: { cause: RetireCause; signal: NodeJS.Signals };
  /** The primary has closed its sockets. The workers must now serve the connections in the accept queues. */
  released: {};
  /** End open connections now. */
  force: {};
  /** An event to which the worker has subscribed. `missed`: how many events before it were dropped because the worker did not read its channel. */
  event: { name: string; event: unknown; missed: number };
  /** Answers the request with this id. Has either `result` or `refusal`. */
  answer: { id: number; result?: Results[keyof Results]; refusal?: Refusal };
}

/** The primary's requests to the watchdog of a worker. */
interface ToWatchdog {
  stack: { id: number };
  /** Make a recording, and write it to the file `to`. */
  record: { id: number; to: string } & Recording;
}

type Messages<T> = { [K in keyof T]: { readonly type: K } & Readonly<T[K]> }[keyof T];
type Fields<T extends v.ObjectEntries> = v.InferOutput<v.ObjectSchema<T, undefined>>;

export type WorkerMessage = Messages<{
  [K in keyof typeof FROM_WORKER]: Fields<(typeof FROM_WORKER)[K]>;
}>;
export type PrimaryMessage = Messages<FromPrimary>;
export type WatchdogRequest = Messages<ToWatchdog>;
export type DrainReport = Readonly<Fields<typeof drain>>;
export type LoadReport = Readonly<Fields<typeof load>>;

const SCHEMAS = new Map<unknown, v.GenericSchema>(
  Object.entries(FROM_WORKER).map(([type, fields]) => [
    type,
    v.object({ type: v.literal(type), ...(fields as v.ObjectEntries) }),
  ]),
);

/** Puts a message in its envelope. */
export function seal<T extends WorkerMessage | PrimaryMessage>(message: T): T & Envelope {
  return { ...ENVELOPE, ...message };
}

/** Whether a message claims to belong to this package, in any version. */
export function isOurs(
  message: unknown,
): message is { readonly ns: string; readonly v?: unknown; readonly type?: unknown } {
  return (message as Partial<Envelope> | null | undefined)?.ns === ENVELOPE.ns;
}

/** The version of a message of this package, if it differs from the version of this process. */
export function foreignVersionOf(message: unknown): number | undefined {
  if (!isOurs(message) || message.v === ENVELOPE.v || !Number.isInteger(message.v))
    return undefined;
  return message.v as number;
}

function isCurrent(message: unknown): message is { readonly type?: unknown } {
  return isOurs(message) && message.v === ENVELOPE.v;
}

/** Parses a message from a worker, and drops unknown fields; `undefined` if the message is invalid. */
export function parseWorkerMessage(message: unknown): WorkerMessage | undefined {
  if (!isCurrent(message)) return undefined;
  const schema = SCHEMAS.get(message.type);
  const result = schema && v.safeParse(schema, message);
  return result?.success ? (result.output as WorkerMessage) : undefined;
}

/** Returns a message from the primary without validation; `undefined` if it belongs to another package or version. */
export function parsePrimaryMessage(message: unknown): PrimaryMessage | undefined {
  return isCurrent(message) ? (message as PrimaryMessage) : undefined;
}

/** Closes an unused socket or server that came with a message. Otherwise it would stay open. */
export function closeHandle(handle: unknown): void {
  const closable = handle as { destroy?(): void; close?(): void } | undefined;
  if (closable?.destroy) closable.destroy();
  else closable?.close?.();
}
