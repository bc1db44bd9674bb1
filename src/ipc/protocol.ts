import * as v from 'valibot';
import { MAX_WORKERS } from '../options/index.js';
import type {
  ClusterSnapshot,
  HealthVerdict,
  ReloadResult,
  RetireCause,
  WorkerMetrics,
  WorkerStats,
} from '../snapshot/index.js';

/** On every message: whose it is, and in which version. */
const ENVELOPE = { ns: 'nestjs-cluster', v: 1 } as const;

/** For what runs before any module does, and can only repeat it. */
export type Envelope = typeof ENVELOPE;

/** An error as it crosses a process boundary. */
export interface ErrorReport {
  readonly name: string;
  readonly message: string;
  readonly stack?: string | undefined;
  readonly code?: string | undefined;
}

/** What a drain had to do by force. */
export interface DrainReport {
  readonly durationMs: number;
  /** Connections destroyed at the deadline. */
  readonly destroyedConnections: number;
  /** Requests that were in flight on them. */
  readonly abortedRequests: number;
  /** WebSockets among them: they were told to close and did not. */
  readonly destroyedWebSockets: number;
  /** Why `app.close()` did not end well. */
  readonly hookError: string | null;
}

/** A request that was in flight when the event loop was blocked. */
export interface BlockedRequest {
  readonly method: string;
  /** Path without the query: that may hold secrets. */
  readonly path: string;
  readonly forMs: number;
}

/** What blocks a worker's event loop, as its watchdog saw it. */
export interface BlockReport {
  /** Time that the event loop had been blocked by then. */
  readonly forMs: number;
  /** Oldest first. */
  readonly requests: readonly BlockedRequest[];
  /** JavaScript frames, innermost first; none where the inspector is not to be had. */
  readonly frames: readonly string[];
}

/** Where a worker listens: the primary's handle travels beside this message. */
export type ListenTarget =
  | { readonly kind: 'tcp'; readonly port: number; readonly host: string }
  | { readonly kind: 'unix'; readonly path: string };

/** What a worker was at when it failed to come up. */
const BOOT_PHASES = ['create', 'init', 'listen'] as const;
export type BootPhase = (typeof BOOT_PHASES)[number];

/**
 * The whole protocol between the primary and a worker. Node's channel is
 * shared with the app and its libraries, so every message carries our name and
 * version; what does not match is somebody else's, or wrong, and is dropped.
 */
export type WorkerMessage =
  /** The app is initialised; may I have the socket? */
  | { readonly type: 'listen-request' }
  /** Accepting. `endpoints`: paths the module serves. */
  | { readonly type: 'ready'; readonly url: string; readonly endpoints: readonly string[] }
  /** The app could not be brought up; the process ends next. */
  | { readonly type: 'boot-failed'; readonly phase: BootPhase; readonly error: ErrorReport }
  /** An error nobody caught. The worker drains and ends, or, with `abort`, ends at once. */
  | { readonly type: 'fatal'; readonly error: ErrorReport; readonly abort: boolean }
  /** From the watchdog, over a pipe of its own: the event loop is blocked. */
  | ({ readonly type: 'blocked' } & BlockReport)
  /** The event loop that was blocked goes on. */
  | { readonly type: 'resumed' }
  /** Answers `check`. */
  | ({ readonly type: 'checked'; readonly id: number } & HealthVerdict)
  | { readonly type: 'reload-request'; readonly id: number }
  | { readonly type: 'scale-request'; readonly id: number; readonly workers: number }
  /** Something the operator should know; one line. */
  | { readonly type: 'warning'; readonly message: string }
  | {
      readonly type: 'pong';
      readonly seq: number;
      readonly stats: WorkerStats;
      readonly debugged: boolean;
    }
  /** The worker was told by a signal of its own to leave. */
  | { readonly type: 'leaving' }
  | { readonly type: 'drained'; readonly report: DrainReport }
  | { readonly type: 'snapshot-request'; readonly id: number; readonly stats: WorkerStats }
  | {
      readonly type: 'collect-request';
      readonly id: number;
      readonly stats: WorkerStats;
      readonly body: string;
    }
  /** Metrics of this worker: asked for by `collect`, or of its own accord. */
  | { readonly type: 'metrics'; readonly asked: boolean; readonly body: string }
  /** The `count` bodies of a `fold`, as one. */
  | {
      readonly type: 'folded';
      readonly epoch: number;
      readonly count: number;
      readonly body: string;
    };

export type PrimaryMessage =
  /** With a handle beside it: listen on that. Without: listen through node:cluster. */
  | { readonly type: 'listen'; readonly target: ListenTarget }
  | { readonly type: 'ping'; readonly seq: number }
  | { readonly type: 'drain'; readonly cause: RetireCause }
  /** End open connections now. */
  | { readonly type: 'force' }
  /** Is the app well? */
  | { readonly type: 'check'; readonly id: number }
  | { readonly type: 'reloaded'; readonly id: number; readonly result: ReloadResult }
  | { readonly type: 'scaled'; readonly id: number; readonly snapshot: ClusterSnapshot }
  | { readonly type: 'snapshot'; readonly id: number; readonly snapshot: ClusterSnapshot }
  | { readonly type: 'collect' }
  /** Fold the metrics of workers that are gone into one body. */
  | { readonly type: 'fold'; readonly epoch: number; readonly bodies: readonly string[] }
  | {
      readonly type: 'collected';
      readonly id: number;
      readonly snapshot: ClusterSnapshot;
      readonly workers: readonly WorkerMetrics[];
      readonly retired: readonly string[];
    };

/** Metrics larger than this are an app out of control; the primary keeps none of it. */
export const MAX_METRICS_BODY_LENGTH = 16 * 1024 * 1024;
/** Of a {@link BlockReport}; the rest says little more. */
export const MAX_BLOCKED_REQUESTS = 10;
export const MAX_FRAMES = 20;
const MAX_TEXT_LENGTH = 64 * 1024;

const amount = v.pipe(v.number(), v.finite(), v.minValue(0));
const text = v.pipe(v.string(), v.maxLength(MAX_TEXT_LENGTH));
const workerCount = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MAX_WORKERS));
const lines = (max: number) => v.pipe(v.array(text), v.maxLength(max));
const body = v.pipe(v.string(), v.maxLength(MAX_METRICS_BODY_LENGTH));
const stats = v.object({
  residentMemoryBytes: amount,
  heapUsedBytes: amount,
  eventLoopUtilization: amount,
  eventLoopDelayP99Ms: amount,
  openConnections: amount,
  requestsInFlight: amount,
  requestsTotal: amount,
});
const error = v.object({
  name: text,
  message: text,
  stack: v.optional(text),
  code: v.optional(text),
});

/** Workers run the app's code: what they send is checked field by field. */
const workerMessageSchema = v.variant('type', [
  v.object({ type: v.literal('listen-request') }),
  v.object({
    type: v.literal('ready'),
    url: text,
    endpoints: lines(16),
  }),
  v.object({ type: v.literal('boot-failed'), phase: v.picklist(BOOT_PHASES), error }),
  v.object({ type: v.literal('fatal'), error, abort: v.boolean() }),
  v.object({
    type: v.literal('blocked'),
    forMs: amount,
    requests: v.pipe(
      v.array(v.object({ method: text, path: text, forMs: amount })),
      v.maxLength(MAX_BLOCKED_REQUESTS),
    ),
    frames: lines(MAX_FRAMES),
  }),
  v.object({ type: v.literal('resumed') }),
  v.object({
    type: v.literal('checked'),
    id: amount,
    healthy: v.boolean(),
    detail: v.nullable(text),
  }),
  v.object({ type: v.literal('reload-request'), id: amount }),
  v.object({ type: v.literal('scale-request'), id: amount, workers: workerCount }),
  v.object({ type: v.literal('warning'), message: text }),
  v.object({ type: v.literal('pong'), seq: amount, stats, debugged: v.boolean() }),
  v.object({ type: v.literal('leaving') }),
  v.object({
    type: v.literal('drained'),
    report: v.object({
      durationMs: amount,
      destroyedConnections: amount,
      abortedRequests: amount,
      destroyedWebSockets: amount,
      hookError: v.nullable(text),
    }),
  }),
  v.object({ type: v.literal('snapshot-request'), id: amount, stats }),
  v.object({ type: v.literal('collect-request'), id: amount, stats, body }),
  v.object({ type: v.literal('metrics'), asked: v.boolean(), body }),
  v.object({ type: v.literal('folded'), epoch: amount, count: amount, body }),
]) satisfies v.GenericSchema<WorkerMessage>;

const envelopeSchema = v.looseObject({
  ns: v.literal(ENVELOPE.ns),
  v: v.literal(ENVELOPE.v),
  type: v.string(),
});

/** Puts a message in its envelope. */
export function seal<T extends WorkerMessage | PrimaryMessage>(message: T): T & typeof ENVELOPE {
  return { ...ENVELOPE, ...message };
}

/** Whether a message claims to be ours, in whatever version. */
export function isOurs(message: unknown): boolean {
  return (
    typeof message === 'object' &&
    message !== null &&
    (message as { ns?: unknown }).ns === ENVELOPE.ns
  );
}

/** What a worker sent, or `undefined` where it does not match the protocol. */
export function parseWorkerMessage(message: unknown): WorkerMessage | undefined {
  if (!v.is(envelopeSchema, message)) return undefined;
  const result = v.safeParse(workerMessageSchema, message);
  return result.success ? result.output : undefined;
}

/** What the primary sent, or `undefined`. The primary is trusted: the envelope is enough. */
export function parsePrimaryMessage(message: unknown): PrimaryMessage | undefined {
  return v.is(envelopeSchema, message) ? (message as unknown as PrimaryMessage) : undefined;
}

/** An error, or whatever else was thrown, as a report that fits a message. Never throws. */
export function reportError(thrown: unknown): ErrorReport {
  if (!(thrown instanceof Error)) return { name: 'Error', message: asText(thrown) };
  const { name, message, stack, code } = thrown as NodeJS.ErrnoException;
  return {
    name: asText(name),
    message: asText(message),
    stack: typeof stack === 'string' ? asText(stack) : undefined,
    code: typeof code === 'string' ? asText(code) : undefined,
  };
}

/** Anything can be thrown, also what has no text: an object without a prototype, a throwing toString(). */
function asText(value: unknown): string {
  try {
    return String(value).slice(0, MAX_TEXT_LENGTH);
  } catch {
    return 'a value that cannot be shown as text';
  }
}
