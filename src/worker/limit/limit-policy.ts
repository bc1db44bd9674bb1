import type { LimitOptions, InForce } from '../../contract/options/index.js';

/** The measurements of a worker in one window. */
export interface LimitWindow {
  /** The share of the window in which the event loop was not idle, 0..1. */
  readonly utilization: number;
  /** The most requests that the app had at once. */
  readonly peak: number;
  /** Mean time from the hand-over of a request to its response, in ms; `undefined` without a response. */
  readonly latencyMs: number | undefined;
}

/** The state of the policy. */
export interface LimitState {
  /** How many requests the app gets at once, at most. Not a whole number. `Infinity` = no limit. */
  readonly limit: number;
  /** The latency, in ms, that requests have while the event loop has time for them. */
  readonly bestMs: number | undefined;
  /** The number of windows in a row in which the event loop was never idle. */
  readonly busyWindows: number;
}

export const UNLIMITED: LimitState = { limit: Infinity, bestMs: undefined, busyWindows: 0 };

/** From this utilization on, the event loop is saturated: more requests at once only wait for each other. */
const SATURATED = 0.98;

/** Below this utilization, the event loop has time for more requests at once, and latency is near its best. */
const FREE = 0.95;

/** The utilization that a limit aims at. */
const AIM = 0.97;

/** The weight of a window in the best latency. */
const WEIGHT = 0.3;

/** Fewer busy windows in a row may be a burst or one long block. */
const BUSY_WINDOWS = 3;

/** Latency may be this many times the best before the limit follows the gradient. */
const TOLERANCE = 1.5;

/** The limit falls to this share in a busy window whose latency is near the best, which may be out of date. */
const CREEP = 0.98;

/** Maximum change of the limit in one window. */
const MOST = 2;

/** A limit of more than this many times the requests at once has no effect, and is forgotten. */
const SPARE = 4;

/**
 * Learns how many requests at once keep latency near its best, from one window to the next.
 *
 * Latency alone does not show overload, because it grows with a slow database too. So the limit falls
 * only while the event loop is saturated, by the gradient: the best latency divided by the current
 * latency. If the limit falls too far, for any reason, the event loop gets idle, and the limit rises.
 */
export function nextLimit(
  state: LimitState,
  window: LimitWindow,
  bounds: Pick<InForce<LimitOptions>, 'minRequests' | 'maxRequests'>,
): LimitState {
  const { utilization, peak } = window;
  const busyWindows = utilization < SATURATED ? 0 : state.busyWindows + 1;
  const bestMs = bestOf(state.bestMs, window);
  const keep = { ...state, bestMs, busyWindows };
  if (utilization < FREE) {
    const risen = state.limit * (AIM / Math.max(utilization, AIM / MOST));
    return { ...keep, limit: within(bounds, risen > SPARE * Math.max(1, peak) ? Infinity : risen) };
  }
  if (busyWindows < BUSY_WINDOWS || peak === 0) return keep;
  const { latencyMs = bestMs } = window;
  const gradient =
    bestMs === undefined || latencyMs === undefined ? 1 : (TOLERANCE * bestMs) / latencyMs;
  const factor = Math.min(CREEP, Math.max(gradient, 1 / MOST));
  return { ...keep, limit: within(bounds, Math.min(state.limit, peak) * factor) };
}

function bestOf(
  bestMs: number | undefined,
  { utilization, latencyMs }: LimitWindow,
): number | undefined {
  if (bestMs === undefined || latencyMs === undefined) return latencyMs ?? bestMs;
  if (utilization < FREE) return bestMs + WEIGHT * (latencyMs - bestMs);
  return Math.min(bestMs, latencyMs);
}

function within(
  { minRequests, maxRequests }: Pick<InForce<LimitOptions>, 'minRequests' | 'maxRequests'>,
  limit: number,
): number {
  return Math.min(Math.max(limit, minRequests), maxRequests);
}
