import type { Scaling } from '../../../contract/snapshot/index.js';

/** The least and the most workers that automatic scaling may choose. */
export interface WorkerLimits {
  readonly min: number;
  readonly max: number;
}

/** The load of the ready workers, once a second. */
export interface Load {
  /** Mean utilization of the workers, 0..1: of the event loop, or of the threads if they are busier. */
  readonly utilization: number;
  /** Connections that no worker has accepted yet. */
  readonly waiting: number;
  /** Whether the memory has room for one more worker, and for the one more of a reload. */
  readonly hasRoom: boolean;
}

/** The state that each decision needs from the samples before. Times are in monotonic ms. */
export interface LoadHistory {
  /** Since when the workers have been busy without a pause; `undefined` if they are not. */
  readonly busySince: number | undefined;
  /** Since when one worker less would have been enough, without a pause. */
  readonly idleSince: number | undefined;
  /** The number of samples in a row with waiting connections. */
  readonly samplesWaiting: number;
  /** When a worker was last taken away. */
  readonly droppedAt: number;
  /** How long one worker less must have been enough before a worker is taken away. */
  readonly holdMs: number;
}

/** One worker more or less. `undefined` = the number stays. */
export type Verdict =
  { readonly by: 1 | -1; readonly scaling: Scaling; readonly reason: string } | undefined;

/** Workers above this utilization are busy. A queue grows fast from here on. */
const BUSY = 0.75;
const BUSY_MS = 10_000;
/** The utilization that one worker less must stay below. Far below BUSY, so that it is not busy at once. */
const IDLE = 0.5;
const IDLE_MS = 60_000;
/** The hold never grows beyond this time. */
const MAX_HOLD_MS = 16 * IDLE_MS;
/** If all workers are busy for a moment, one sample shows waiting connections. So one sample is not enough. */
const WAITING_SAMPLES = 3;
const MANY_WAITING = 33;

export const NO_HISTORY: LoadHistory = {
  busySince: undefined,
  idleSince: undefined,
  samplesWaiting: 0,
  droppedAt: -Infinity,
  holdMs: IDLE_MS,
};

/**
 * Decides whether a worker more or less is needed, one at a time.
 *
 * - More: the mean utilization stays above 0.75 for 10 s, or connections wait in three samples in a
 *   row, or more than 33 wait at once.
 * - Less: without one worker, the utilization would stay below 0.5 for 60 s. If a worker is needed
 *   again within a minute, this time doubles. Otherwise it halves with the next worker that is
 *   added, down to 60 s.
 */
export function judgeLoad(
  before: LoadHistory,
  { utilization, waiting, hasRoom }: Load,
  workers: number,
  { min, max }: WorkerLimits,
  now: number,
): { readonly history: LoadHistory; readonly verdict: Verdict } {
  const isIdle = waiting === 0 && workers > 1 && (utilization * workers) / (workers - 1) < IDLE;
  const history: LoadHistory = {
    ...before,
    busySince: utilization > BUSY ? (before.busySince ?? now) : undefined,
    idleSince: isIdle ? (before.idleSince ?? now) : undefined,
    samplesWaiting: waiting > 0 ? before.samplesWaiting + 1 : 0,
  };
  const more = reasonForMore(history, waiting, now);
  if (more !== undefined && workers < max && hasRoom) {
    return { history: afterMore(history, now), verdict: { by: 1, ...more } };
  }
  const { idleSince = Infinity, holdMs } = history;
  if (workers > min && now - idleSince >= holdMs) {
    const verdict = { by: -1, scaling: 'down idle', reason: 'one worker less is enough' } as const;
    return { history: { ...NO_HISTORY, holdMs, droppedAt: now }, verdict };
  }
  return { history, verdict: undefined };
}

function reasonForMore(
  { busySince = Infinity, samplesWaiting }: LoadHistory,
  waiting: number,
  now: number,
): { readonly scaling: Scaling; readonly reason: string } | undefined {
  if (waiting > MANY_WAITING || samplesWaiting >= WAITING_SAMPLES) {
    return { scaling: 'up backlog', reason: 'connections wait for a worker' };
  }
  if (now - busySince < BUSY_MS) return undefined;
  return { scaling: 'up utilization', reason: 'the workers are busy' };
}

function afterMore({ droppedAt, holdMs }: LoadHistory, now: number): LoadHistory {
  const wasTooEarly = now - droppedAt < IDLE_MS;
  const next = wasTooEarly ? holdMs * 2 : holdMs / 2;
  return { ...NO_HISTORY, holdMs: Math.min(MAX_HOLD_MS, Math.max(IDLE_MS, next)) };
}
