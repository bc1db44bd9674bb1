import type { LoadReport } from '../../contract/messages.js';

/** A load up to this ratio above the mean is accepted, because moving connections would cost more. */
const TOLERANCE = 0.05;

/** If a worker's load is this fraction below the mean, every worker above the mean sheds load. */
const SHORTAGE = 0.15;

/** A difference of up to this many standard deviations is treated as noise (Poisson: the square root of the count). */
const STANDARD_DEVIATIONS = 3;

/** A surplus above this ratio is clear: the worker must shed load now, and the next round starts earlier. */
const CLEAR_SURPLUS = 0.15;

/** A surplus that is not clear must last this many rounds, longer than a garbage collection. */
const LASTING_ROUNDS = 2;

/**
 * Requests are assumed to cost the same on every worker, unless event-loop time differs by more than
 * this factor. Event-loop time is noisy, because it also passes while another process has the CPU.
 */
const COST_NOISE = 2;

/** Above this mean utilization, event-loop time does not show how many requests wait. */
const FULL_UTILIZATION = 0.8;

/** A surplus counts as shrinking if it is below this share of its initial ratio. */
const PROGRESS = 0.8;

/** After this many rounds with the same surplus, a worker is asked less and less often to shed load. */
const PATIENT_ROUNDS = 20;

/** The maximum number of rounds between two requests to a worker whose surplus does not change. */
const MAX_PAUSE_ROUNDS = 64;

/** A worker's surplus of load, and for how many rounds it has lasted. */
export interface Surplus {
  /** Share of the worker's load that is above the mean, 0..1. */
  readonly ratio: number;
  /** The number of rounds in a row with about the same surplus; 1 in the first round. */
  readonly rounds: number;
  /** The ratio in the first of these rounds. */
  readonly initialRatio: number;
}

/** The share of its load that each worker should give away to reach the mean, 0..1. */
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
    // Connections move whole, only if the receiver ends up with no more load than the giver.
    return short && load * (1 - one) >= least + load * one ? Math.max(surplus, one) : surplus;
  });
}

/**
 * The load of each worker: the event-loop time for its requests. If event loops are fully used,
 * that time does not show how many requests wait. In that case the load is the time to serve each
 * connection once, because clients wait that long. `undefined` if the load is not known.
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

export function nextSurplus(previous: Surplus | undefined, ratio: number): Surplus | undefined {
  if (ratio === 0) return undefined;
  const fresh = { ratio, rounds: 1, initialRatio: ratio };
  if (previous === undefined) return fresh;
  const { rounds, initialRatio } = previous;
  // The surplus has clearly grown, so earlier rounds no longer count.
  if (ratio > initialRatio + CLEAR_SURPLUS) return fresh;
  // A shrinking surplus is not noise, so it is treated as a lasting surplus.
  if (ratio < initialRatio * PROGRESS) return { ...fresh, rounds: LASTING_ROUNDS };
  return { ratio, rounds: rounds + 1, initialRatio };
}

/** Whether the surplus is too large to be noise. */
export function isClear({ ratio }: Pick<Surplus, 'ratio'>): boolean {
  return ratio > CLEAR_SURPLUS;
}

/**
 * Whether to ask a worker to give its surplus away. If the surplus stays (a proxy pins clients to
 * the worker, or one client causes all the load), reconnecting does not help. So the worker is asked
 * less and less often.
 */
export function isToGiveAway({ ratio, rounds }: Surplus): boolean {
  if (!isClear({ ratio }) && rounds < LASTING_ROUNDS) return false;
  if (rounds <= PATIENT_ROUNDS) return true;
  return rounds % Math.min(2 ** Math.floor(Math.log2(rounds)), MAX_PAUSE_ROUNDS) === 0;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
