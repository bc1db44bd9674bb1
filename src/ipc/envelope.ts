import * as v from 'valibot';
import { MAX_WORKERS } from '../options/index.js';
import { MAX_METRICS_BODY_LENGTH } from '../snapshot/index.js';
import { MAX_TEXT_LENGTH } from './error-report.js';
import { BOOT_PHASES, type PrimaryMessage, type WorkerMessage } from './protocol.js';

/** On every message: whose it is, and in which version. */
const ENVELOPE = { ns: 'nestjs-cluster', v: 1 } as const;

/** For what runs before any module does, and can only repeat it. */
export type Envelope = typeof ENVELOPE;

/** What several such bodies are merged into: they have most series in common. */
const MAX_MERGED_BODY_LENGTH = 4 * MAX_METRICS_BODY_LENGTH;
/** Of a {@link BlockReport}; the rest says little more. */
export const MAX_BLOCKED_REQUESTS = 10;
export const MAX_FRAMES = 20;

const amount = v.pipe(v.number(), v.finite(), v.minValue(0));
const text = v.pipe(v.string(), v.maxLength(MAX_TEXT_LENGTH));
const workerCount = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MAX_WORKERS));
const lines = (max: number) => v.pipe(v.array(text), v.maxLength(max));
const body = v.pipe(v.string(), v.maxLength(MAX_METRICS_BODY_LENGTH));
const mergedBody = v.pipe(v.string(), v.maxLength(MAX_MERGED_BODY_LENGTH));
const stats = v.object({
  residentMemoryBytes: amount,
  heapUsedBytes: amount,
  eventLoopUtilization: amount,
  eventLoopDelayP99Ms: amount,
  cpuSecondsTotal: amount,
  gcSecondsTotal: amount,
  openConnections: amount,
  requestsInFlight: amount,
  requestsTotal: amount,
  rebalancedConnectionsTotal: amount,
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
    minReady: v.union([v.literal('all'), amount]),
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
  v.object({ type: v.literal('replace-request'), reason: text }),
  v.object({ type: v.literal('warning'), message: text }),
  v.object({ type: v.literal('pong'), seq: amount, stats, debugged: v.boolean() }),
  v.object({
    type: v.literal('load'),
    requests: amount,
    connections: amount,
    utilization: amount,
  }),
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
  v.object({ type: v.literal('collect-request'), id: amount, stats, ageMs: amount, body }),
  v.object({ type: v.literal('metrics'), asked: v.boolean(), stats, ageMs: amount, body }),
  v.object({ type: v.literal('merged'), body: mergedBody }),
  v.object({ type: v.literal('folded'), epoch: amount, count: amount, body: mergedBody }),
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
