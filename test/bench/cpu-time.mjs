import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { readStat } from './process-table.mjs';

/** Clock ticks in which /proc counts. */
export const TICKS_PER_SECOND = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));

/** Maximum error by rounding when user and system time of two readings are subtracted. */
const ROUNDING_SECONDS = 2 / TICKS_PER_SECOND;

/**
 * User and system time of a process so far: to the nanosecond for each live thread, and in clock
 * ticks of 10 ms for the process with all threads that it ever had. No threads if it has ended.
 */
export function readCpuTime(pid) {
  const threads = new Map();
  for (const thread of list(`/proc/${pid}/task`)) {
    const seconds = threadSeconds(`/proc/${pid}/task/${thread}/schedstat`);
    if (seconds !== undefined) threads.set(thread, seconds);
  }
  return { threads, ...ticksOf(readStat(pid)) };
}

/**
 * Seconds of CPU that a process used between two readings. Threads that ended between them are only
 * in the ticks, so the ticks are used if they exceed the sum of the threads by more than rounding.
 *
 * @param before undefined if the process was started after that reading.
 */
export function cpuBetween(before, after) {
  const exact = sum(threadsBetween(before, after));
  const rough = Math.max(0, after.seconds - (before?.seconds ?? 0));
  return rough - exact > ROUNDING_SECONDS ? rough : exact;
}

/** User and system time of processes so far, in seconds and by clock ticks. */
export function cpuSeconds(pids) {
  return sum([...pids].map((pid) => ticksOf(readStat(pid)).seconds));
}

/** Seconds of CPU that each thread used between two readings. */
export function threadsBetween(before, after) {
  return [...after.threads].map(([thread, seconds]) =>
    Math.max(0, seconds - (before?.threads.get(thread) ?? 0)),
  );
}

/** Fields 14 and 15 of proc(5), counted from the state, which is field 3. */
function ticksOf(stat) {
  if (!stat) return { seconds: 0, userSeconds: 0 };
  const userSeconds = Number(stat[11]) / TICKS_PER_SECOND;
  return { seconds: userSeconds + Number(stat[12]) / TICKS_PER_SECOND, userSeconds };
}

/** Undefined where it has ended, or the kernel does not say. */
function threadSeconds(file) {
  try {
    return Number(readFileSync(file, 'utf8').split(' ')[0]) / 1e9;
  } catch {
    return undefined;
  }
}

function list(folder) {
  try {
    return readdirSync(folder);
  } catch {
    return []; // the process has ended
  }
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}
