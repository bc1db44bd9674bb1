import type { LoadReport } from '../../../contract/ipc/index.js';

/** Above the mean by less than this is balanced: moving connections would cost more than it gains. */
const TOLERANCE = 0.05;

/** A worker this far below the mean lacks load. Workers above the mean then give some away. */
const SHORTAGE = 0.15;

/** Random arrivals differ by the root of their number. A difference of up to this many roots is chance. */
const STANDARD_DEVIATIONS = 3;

/** More than this is acted on at once, and followed by a quick round. */
const CLEAR_SURPLUS = 0.15;

/** Rounds that a smaller one has to last: it may be a collection of garbage, a neighbour on the core. */
const LASTING_ROUNDS = 2;

/**
 * Requests are taken to cost the same on every worker unless the event loop says otherwise by this
 * factor: its time is noisy, for it goes on while others have the core.
 */
const COST_NOISE = 2;

/** Above this mean, event-loop time says little about the requests that wait. */
const FULL_UTILIZATION = 0.8;

/** A surplus that is not smaller by this than it was has not been helped. */
const PROGRESS = 0.8;

/** Rounds in which a worker is asked in vain before it is asked less and less. */
const PATIENT_ROUNDS = 20;

/** Longest pause of such a worker, in rounds. */
const MAX_PAUSE_ROUNDS = 64;

/** A surplus over the rounds that it has lasted. */
export interface Surplus {
  /** Share of the worker's load that is above the mean, 0..1. */
  readonly ratio: number;
  /** Rounds in a row in which it has stayed about the same; 1 in its first. */
  readonly rounds: number;
  /** Its ratio in the first of them. */
  readonly initialRatio: number;
}

/** The share of its load that each worker should give away, 0..1: what it carries above the mean. */
export function surplusRatios(reports: readonly LoadReport[]): number[] {
  const requests = sum(reports.map((report) => report.requests));
  if (requests === 0) return reports.map(() => 0);
  const loads = loadsOf(reports, requests);
  const known = loads.filter((load) => load !== undefined);
  const mean = sum(known) / known.length;
  const least = Math.min(...known);
  const chance = STANDARD_DEVIATIONS / Math.sqrt(requests / reports.length);
  const short = least < mean * (1 - SHORTAGE - chance);
  const limit = short ? mean : mean * (1 + TOLERANCE + chance);
  return reports.map(({ connections }, index) => {
    const load = loads[index] ?? 0;
    if (!(load > limit)) return 0;
    const surplus = (load - mean) / load;
    const one = 1 / connections;
    // Less than one connection cannot be given; a whole one only where that does not turn the tables.
    return short && load * (1 - one) >= least + load * one ? Math.max(surplus, one) : surplus;
  });
}

/**
 * The load of each worker: event-loop time for its requests. Full event loops
 * hide how much waits. The load is then the time to serve each connection once,
 * because clients wait that long. `undefined` if it cannot be told.
 */
function loadsOf(reports: readonly LoadReport[], requests: number): (number | undefined)[] {
  const cost = sum(reports.map(({ utilization }) => utilization)) / requests;
  const busy = reports.map((report) => {
    const { utilization } = report;
    const expected = report.requests * cost;
    return Math.min(Math.max(expected, utilization / COST_NOISE), utilization * COST_NOISE);
  });
  const meanUtilization = sum(reports.map(({ utilization }) => utilization)) / reports.length;
  if (meanUtilization < FULL_UTILIZATION) return busy;
  return reports.map(({ requests: answered, connections, utilization }, index) => {
    if (answered > 0) return (connections * busy[index]!) / answered;
    return utilization < FULL_UTILIZATION ? 0 : undefined;
  });
}

/** The surplus of a worker after a further round. */
export function nextSurplus(previous: Surplus | undefined, ratio: number): Surplus | undefined {
  if (ratio === 0) return undefined;
  const fresh = { ratio, rounds: 1, initialRatio: ratio };
  if (previous === undefined) return fresh;
  const { rounds, initialRatio } = previous;
  // Something else has happened, which must not wait for what could not be helped.
  if (ratio > initialRatio + CLEAR_SURPLUS) return fresh;
  // It is not chance any more, and it shrinks.
  if (ratio < initialRatio * PROGRESS) return { ...fresh, rounds: LASTING_ROUNDS };
  return { ratio, rounds: rounds + 1, initialRatio };
}

/** Whether it is too much to be chance. */
export function isClear({ ratio }: Pick<Surplus, 'ratio'>): boolean {
  return ratio > CLEAR_SURPLUS;
}

/**
 * Whether a worker is to be asked to give its surplus away. If that does not
 * help (a proxy pins clients to it, one client makes all the load), its clients
 * reconnect for nothing, so it is asked less and less often.
 */
export function isToGiveAway({ ratio, rounds }: Surplus): boolean {
  if (!isClear({ ratio }) && rounds < LASTING_ROUNDS) return false;
  if (rounds <= PATIENT_ROUNDS) return true;
  return rounds % Math.min(2 ** Math.floor(Math.log2(rounds)), MAX_PAUSE_ROUNDS) === 0;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
