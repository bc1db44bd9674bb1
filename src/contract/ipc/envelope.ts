import * as v from 'valibot';
import { MAX_WORKERS } from '../options/index.js';
import {
  MAX_FOLDED_BODY_LENGTH,
  MAX_METRICS_BODY_LENGTH,
  type WorkerStats,
} from '../snapshot/index.js';
import { cutText } from './error-report.js';
import type { PrimaryMessage } from './primary-message.js';
import type { ExaminationMessage, WorkerMessage } from './worker-message.js';

/**
 * The fields of every message that name this package and the version of the protocol. The version
 * changes only if the two sides could not work together. A new optional field does not change it.
 */
const ENVELOPE = { ns: 'nestjs-cluster', v: 1 } as const;

/** The type of {@link ENVELOPE}, for code that runs before any module is loaded and so repeats the value. */
export type Envelope = typeof ENVELOPE;

/** The maximum numbers of entries in a {@link BlockReport}. A message with more is refused. */
export const MAX_BLOCKED_REQUESTS = 10;
export const MAX_FRAMES = 20;

/** The maximum number of events that a worker can subscribe to. No version has so many events. */
const MAX_SUBSCRIPTIONS = 100;

/** The maximum number of findings in a message. A message with more is refused; each check finds only a few. */
const MAX_FINDINGS = 1_000;

const amount = v.pipe(v.number(), v.finite(), v.minValue(0));
const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
/** A long text is cut, not refused, because its beginning is useful. */
const text = v.pipe(v.string(), v.transform(cutText));
const workerCount = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MAX_WORKERS));
const lines = (max: number) => v.pipe(v.array(text), v.maxLength(max));
const body = v.pipe(v.string(), v.maxLength(MAX_METRICS_BODY_LENGTH));
const foldedBody = v.pipe(v.string(), v.maxLength(MAX_FOLDED_BODY_LENGTH));
/** A measurement that counts as 0 if another version of this package leaves it out. */
const measured = v.fallback(amount, 0);
const counted = v.fallback(count, 0);
const STATS = {
  residentMemoryBytes: amount,
  heapUsedBytes: amount,
  eventLoopUtilization: amount,
  eventLoopDelayP99Ms: amount,
  cpuSecondsTotal: amount,
  gcSecondsTotal: amount,
  threadUtilization: amount,
  openConnections: amount,
  requestsInFlight: amount,
  requestsTotal: amount,
  rebalancedConnectionsTotal: amount,
  logLinesDroppedTotal: amount,
  droppedConnectionsTotal: amount,
} satisfies Record<keyof WorkerStats, typeof amount>;
/** Each number is checked separately. If a number is missing or wrong, its last known value stays. */
const stats = v.pipe(
  v.fallback(v.optional(v.record(v.string(), v.unknown()), {}), {}),
  v.transform((given): Partial<WorkerStats> => {
    const known = Object.entries(STATS).filter(([name, schema]) => v.is(schema, given[name]));
    return Object.fromEntries(known.map(([name]) => [name, given[name]]));
  }),
);
const inFlight = v.pipe(
  v.array(v.object({ method: text, path: text, forMs: amount })),
  v.maxLength(MAX_BLOCKED_REQUESTS),
);
const frames = lines(MAX_FRAMES);
const error = v.object({
  name: text,
  message: text,
  stack: v.optional(text),
  code: v.optional(text),
});

/**
 * Workers run the app's code, so their messages are checked field by field. In a rolling reload
 * they may also run another version of this package. So an unknown field is ignored, and a field
 * that only informs may be missing.
 */
const workerMessageSchema = v.variant('type', [
  v.object({ type: v.literal('listen-request') }),
  v.object({
    type: v.literal('ready'),
    url: v.nullish(text),
    endpoints: v.optional(lines(16)),
    minReady: v.optional(v.union([v.literal('all'), amount])),
    verifiable: v.fallback(v.optional(v.boolean()), undefined),
  }),
  v.object({
    type: v.literal('boot-failed'),
    phase: v.fallback(v.picklist(['create', 'init', 'listen']), 'create'),
    error,
  }),
  v.object({ type: v.literal('fatal'), error, abort: v.boolean(), requests: inFlight }),
  v.object({ type: v.literal('exiting'), requests: inFlight }),
  v.object({
    type: v.literal('blocked'),
    forMs: amount,
    requests: inFlight,
    frames,
  }),
  v.object({
    type: v.literal('stack'),
    id: count,
    blockedForMs: v.nullable(amount),
    requests: inFlight,
    frames,
    answered: v.boolean(),
  }),
  v.object({ type: v.literal('recorded'), id: count, problem: v.nullable(text) }),
  v.object({ type: v.literal('resumed') }),
  v.object({
    type: v.literal('checked'),
    id: count,
    healthy: v.boolean(),
    detail: v.optional(v.nullable(text), null),
  }),
  v.object({ type: v.literal('verified'), error: v.nullable(error) }),
  v.object({ type: v.literal('reload-request'), id: count }),
  v.object({
    type: v.literal('scale-request'),
    id: count,
    workers: workerCount,
  }),
  v.object({ type: v.literal('restart-request'), id: count, slot: count }),
  v.object({ type: v.literal('replace-request'), reason: text }),
  v.object({ type: v.literal('lead-request') }),
  v.object({ type: v.literal('leads'), seq: count }),
  v.object({ type: v.literal('resigned'), at: amount }),
  v.object({ type: v.literal('job-begun'), job: text }),
  v.object({ type: v.literal('warning'), message: text }),
  v.object({
    type: v.literal('pong'),
    seq: v.fallback(v.optional(count), undefined),
    stats,
    debugged: v.fallback(v.optional(v.boolean()), undefined),
  }),
  v.object({
    type: v.literal('load'),
    requests: count,
    connections: count,
    utilization: amount,
  }),
  v.object({ type: v.literal('leaving'), closed: v.fallback(v.optional(v.boolean()), undefined) }),
  v.object({
    type: v.literal('drained'),
    report: v.object({
      destroyedConnections: counted,
      abortedRequests: counted,
      destroyedWebSockets: counted,
      hookError: v.optional(v.nullable(text), null),
    }),
  }),
  v.object({ type: v.literal('snapshot-request'), id: count, stats }),
  v.object({ type: v.literal('collect-request'), id: count, stats, ageMs: measured, body }),
  v.object({ type: v.literal('metrics'), asked: v.boolean(), stats, ageMs: measured, body }),
  v.object({ type: v.literal('hub-request'), id: count }),
  v.object({ type: v.literal('subscribe'), events: lines(MAX_SUBSCRIPTIONS) }),
  v.object({ type: v.literal('folded'), epoch: count, count, body: foldedBody }),
]) satisfies v.GenericSchema<unknown, WorkerMessage>;

const examinationSchema = v.object({
  type: v.literal('examined'),
  workers: workerCount,
  findings: v.pipe(
    v.array(v.object({ name: text, level: text, where: text, problem: text, remedy: text })),
    v.maxLength(MAX_FINDINGS),
  ),
  ignored: lines(MAX_FINDINGS),
}) satisfies v.GenericSchema<unknown, ExaminationMessage>;

const envelopeSchema = v.looseObject({
  ns: v.literal(ENVELOPE.ns),
  v: v.literal(ENVELOPE.v),
  type: v.string(),
});

/** Puts a message in its envelope. */
export function seal<T extends WorkerMessage | ExaminationMessage | PrimaryMessage>(
  message: T,
): T & typeof ENVELOPE {
  return { ...ENVELOPE, ...message };
}

/** Whether a message claims to belong to this package, in any version. */
export function isOurs(message: unknown): boolean {
  return (
    typeof message === 'object' &&
    message !== null &&
    (message as { ns?: unknown }).ns === ENVELOPE.ns
  );
}

/** The version of a message of this package, if it differs from the version of this process. */
export function foreignVersionOf(message: unknown): number | undefined {
  if (!isOurs(message)) return undefined;
  const { v: version } = message as { v?: unknown };
  return Number.isInteger(version) && version !== ENVELOPE.v ? (version as number) : undefined;
}

/** The message of a worker; `undefined` if it does not match the protocol. */
export function parseWorkerMessage(message: unknown): WorkerMessage | undefined {
  if (!v.is(envelopeSchema, message)) return undefined;
  const result = v.safeParse(workerMessageSchema, message);
  return result.success ? result.output : undefined;
}

/** The message of a worker that `nestjs-cluster doctor` examines; `undefined` for any other. */
export function parseExamination(message: unknown): ExaminationMessage | undefined {
  const result = v.safeParse(examinationSchema, message);
  return v.is(envelopeSchema, message) && result.success ? result.output : undefined;
}

/** The message of the primary, or `undefined`. The primary is trusted, so only the envelope is checked. */
export function parsePrimaryMessage(message: unknown): PrimaryMessage | undefined {
  return v.is(envelopeSchema, message) ? (message as unknown as PrimaryMessage) : undefined;
}
