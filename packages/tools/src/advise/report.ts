import { relative } from 'node:path';
import { type Column, formatMs, formatTable, percent } from '../output.js';
import type { Owner, Slice, Work } from './attribution.js';
import type { Collected } from './collect.js';
import { type Kind, remedyOf } from './remedies.js';
import { sum } from '../sum.js';

/** The advice for a cluster. Times are in ms, shares are from 0 to 1. */
export interface Advice {
  /** The number of profiled workers, and the sum of their times. */
  readonly workers: number;
  readonly profiledMs: number;
  /** Share of the time that the event loops were busy. */
  readonly utilization: number;
  /** The longest time that an event loop ran only one handler. */
  readonly longestMs: number;
  /** p99 of the time that a request waits for the event loop, now and without the listed functions. */
  readonly waitP99Ms: number;
  readonly waitP99WithoutMs: number;
  /** The functions that block the event loop, largest share first. */
  readonly functions: readonly FunctionAdvice[];
  /** Why no function is listed; `null` if any is. */
  readonly nothing: string | null;
  /** Why profiles are missing. */
  readonly lost: readonly string[];
}

export interface FunctionAdvice {
  /** The function, or a package or file if no app function was running. */
  readonly name: string;
  readonly place: string | null;
  /** Share of the event loops' time. */
  readonly share: number;
  readonly longestMs: number;
  /** p99 of the time that a request would wait for the event loop without this function. */
  readonly waitP99WithoutMs: number;
  /** The kind of work that takes more than half of the function's time, else `code`. */
  readonly kind: Kind;
  readonly remedy: string;
}

/** A function is listed if it blocks the event loop this long at least twice. */
const BLOCK_MS = 20;
/** A function is also listed if its calls of {@link SHORT_MS} or more take this share. Threads do not help short calls. */
const LEAST_SHARE = 0.05;
const SHORT_MS = 5;
/** A package serves all routes, so it is listed only if its blocks take this share. */
const LEAST_BLOCKED_SHARE = 0.01;
const LEAST_BLOCKS = 3;
/** Below this share an event loop counts as idle. */
const IDLE_SHARE = 0.02;

export function adviceOf({ work, workers, lost }: Collected): Advice {
  const named = [...work.owners.values()]
    .map((owner) => ({ owner, times: timesOf(owner, work.slices) }))
    .filter(({ owner, times }) => isBlocking(owner, times, work.ms))
    .map(({ owner, times }) => ({ owner, ms: sum(times), longest: times[0]! }))
    .toSorted((a, b) => b.ms - a.ms);
  const longestMs = work.slices.reduce((most, { ms }) => Math.max(most, ms), 0);
  const utilization = work.ms === 0 ? 0 : work.busyMs / work.ms;
  return {
    workers,
    profiledMs: work.ms,
    utilization,
    longestMs,
    waitP99Ms: waitP99(work, []),
    waitP99WithoutMs: waitP99(
      work,
      named.map(({ owner }) => owner),
    ),
    functions: named.map(({ owner, ms, longest }) => ({
      name: owner.name,
      place: owner.place === null ? null : near(owner.place),
      share: ms / work.ms,
      longestMs: longest,
      waitP99WithoutMs: waitP99(work, [owner]),
      ...verdictOf(owner, kindOf(work.kinds.get(owner)!)),
    })),
    nothing: named.length > 0 ? null : whyNothing(utilization, longestMs),
    lost,
  };
}

/** The times of an owner in all slices, longest first. */
function timesOf(owner: Owner, slices: readonly Slice[]): readonly number[] {
  return slices
    .map((slice) => timeIn(slice, owner))
    .filter((ms) => ms > 0)
    .toSorted((a, b) => b - a);
}

/**
 * The time of an owner in a slice. V8 does not report whose garbage is collected, so the
 * collector's time is divided among the owners, up to their own time. The rest is older garbage.
 */
function timeIn({ parts, garbageMs }: Slice, owner: Owner): number {
  const own = parts.get(owner) ?? 0;
  return own === 0 ? 0 : own * (1 + Math.min(1, garbageMs / sum([...parts.values()])));
}

function isBlocking({ place }: Owner, times: readonly number[], allMs: number): boolean {
  const shareFrom = (least: number) => sum(times.filter((ms) => ms >= least)) / allMs;
  if (place === null) {
    const isRepeated = (times[LEAST_BLOCKS - 1] ?? 0) >= BLOCK_MS;
    return isRepeated && shareFrom(BLOCK_MS) >= LEAST_BLOCKED_SHARE;
  }
  return (times[1] ?? 0) >= BLOCK_MS || shareFrom(SHORT_MS) >= LEAST_SHARE;
}

/**
 * p99 of the wait for the event loop. A request that arrives at a random moment waits until the running
 * slice ends. The probability of a wait above `t` is the sum of `max(0, slice - t)` divided by the time.
 *
 * @param without functions that are assumed not to run on the event loop.
 */
function waitP99({ slices, ms }: Work, without: readonly Owner[]): number {
  const lengths = slices
    .map((slice) => without.reduce((left, owner) => left - timeIn(slice, owner), slice.ms))
    .toSorted((a, b) => b - a);
  let longerMs = 0;
  for (const [index, length] of lengths.entries()) {
    longerMs += length;
    const wait = (longerMs - 0.01 * ms) / (index + 1);
    if (wait >= (lengths[index + 1] ?? 0)) return Math.max(0, wait);
  }
  return 0;
}

/** The kind that takes more than half of the time. */
function kindOf(kinds: ReadonlyMap<Kind, number>): Kind {
  const half = sum([...kinds.values()]) / 2;
  return [...kinds].find(([, ms]) => ms > half)?.[0] ?? 'code';
}

function verdictOf({ place }: Owner, kind: Kind): Pick<FunctionAdvice, 'kind' | 'remedy'> {
  const ownCode =
    place === null
      ? 'no app function was running; record a CPU profile to see which functions of packages were'
      : 'move it into a @CpuBound() method whose arguments and result can be copied';
  return { kind, remedy: remedyOf(kind) ?? ownCode };
}

/** Shortens a path in the working directory to a relative path. */
function near(place: string): string {
  const short = relative(process.cwd(), place);
  return short.startsWith('..') ? place : short;
}

function whyNothing(utilization: number, longestMs: number): string {
  return utilization < IDLE_SHARE
    ? `the event loops were busy only ${percent(utilization)} of the time: profile again under the usual load`
    : `no function blocked the event loop twice for ${BLOCK_MS} ms, or took ${percent(LEAST_SHARE)} of its time in calls of ${SHORT_MS} ms or more; ` +
        `the event loop was busy ${percent(utilization)} of the time, at most ${formatMs(longestMs)} ms at a time`;
}

const COLUMNS: readonly Column<FunctionAdvice>[] = [
  { title: 'share', value: ({ share }) => percent(share) },
  { title: 'longest ms', value: ({ longestMs }) => formatMs(longestMs) },
  { title: 'p99 ms without it', value: ({ waitP99WithoutMs }) => formatMs(waitP99WithoutMs) },
  { title: 'function', value: ({ name }) => name, left: true },
  { title: 'place', value: ({ place }) => place ?? '-', left: true },
];

/** The advice as lines for a terminal. */
export function linesOf(advice: Advice): readonly string[] {
  const { workers, profiledMs, utilization, longestMs, nothing, lost } = advice;
  const seconds = Math.round(profiledMs / 1_000 / workers);
  return [
    `Profiled ${workers === 1 ? '1 worker' : `${workers} workers`} for ${seconds} s. The event loops were busy ${percent(utilization)} of the time, at most ${formatMs(longestMs)} ms at a time.`,
    ...lost.map((reason) => `Not profiled: ${reason}`),
    ...(nothing === null ? tableOf(advice) : [`Nothing to gain: ${nothing}.`]),
  ];
}

function tableOf({ waitP99Ms, waitP99WithoutMs, functions }: Advice): readonly string[] {
  return [
    `The p99 wait for the event loop is at least ${formatMs(waitP99Ms)} ms; without these functions, ${formatMs(waitP99WithoutMs)} ms.`,
    '',
    ...formatTable(COLUMNS, functions),
    '',
    ...functions.map(({ name, remedy }) => `${name}: ${remedy}.`),
    '',
    'A call in a thread costs 0.1 to 0.2 ms, plus the time to copy its arguments and its result.',
  ];
}
