import type { Metric } from 'prom-client';
import type { DroppedReply } from './pending-calls.js';

/** How a queued call ended for its caller. */
export const CALL_OUTCOMES = [
  'completed',
  'failed',
  'timeout',
  'aborted',
  'rejected',
  'local',
] as const;
export type CallOutcome = (typeof CALL_OUTCOMES)[number];

/** Told of calls and jobs: for metrics. Must be cheap and must not throw. */
export interface QueueObserver {
  called(task: string, outcome: CallOutcome): void;
  replyDropped(why: DroppedReply): void;
  /** A job begins, and had waited for so long. */
  began(queue: string, waitedMs: number): void;
  ran(task: string, ms: number): void;
  /** The consumer of a job was lost. */
  stalled(queue: string): void;
  readonly metrics: readonly Metric[];
}

/** Where nothing is measured. */
export const UNOBSERVED: QueueObserver = {
  called() {},
  replyDropped() {},
  began() {},
  ran() {},
  stalled() {},
  metrics: [],
};
