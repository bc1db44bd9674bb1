import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { readStat } from './process-table.mjs';

const TICKS_PER_SECOND = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));

/** User and system time of a process so far, in seconds; 0 when it has ended. */
export function cpuSeconds(pid) {
  return secondsOf(readStat(pid));
}

/**
 * Begins to measure what the processes of a running system use.
 *
 * @returns a function that ends it: given the requests that were answered meanwhile, what each
 *   of them cost, how evenly the workers shared them, and what memory is in use.
 */
export function measureUsage(running) {
  const before = readCpu(running);
  return (requests) => {
    const after = readCpu(running);
    const front = used(before.front, after.front);
    const workers = used(before.workers, after.workers);
    const total = front.total + workers.total;
    const shares = running.threads
      ? busiest(used(before.threads, after.threads), running.threads)
      : workers.each;
    return {
      cpuMicros: requests > 0 ? (total / requests) * 1e6 : undefined,
      primaryCpuShare: after.front.size > 0 ? front.total / total : undefined,
      busiestRatio: shares.length > 1 ? busiestToMean(shares) : undefined,
      ...readMemory(running),
    };
  };
}

/** Resident memory in bytes: of primary or proxy, of a worker (their mean), and in all. */
export function readMemory(running) {
  const front = running.frontPids().map(residentBytes);
  const workers = running.workerPids().map(residentBytes);
  return {
    frontRssBytes: front.length > 0 ? sum(front) : undefined,
    // Where workers are threads, nobody knows whose the memory is.
    workerRssBytes:
      running.threads || workers.length === 0 ? undefined : sum(workers) / workers.length,
    totalRssBytes: sum(front) + sum(workers),
  };
}

function readCpu(running) {
  const read = (pids) => new Map(pids.map((pid) => [pid, cpuSeconds(pid)]));
  const workers = read(running.workerPids());
  return { front: read(running.frontPids()), workers, threads: readThreads(running, workers) };
}

/** Of one process whose workers are its threads: the CPU time of each thread. */
function readThreads(running, workers) {
  if (!running.threads) return undefined;
  const threads = new Map();
  for (const pid of workers.keys()) {
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      threads.set(thread, secondsOf(readStat(`${pid}/task/${thread}`)));
    }
  }
  return threads;
}

/** Of all threads of a process those that serve: as many as there are workers, the busiest. */
function busiest({ each }, workers) {
  return each.toSorted((a, b) => b - a).slice(0, workers);
}

/** A process that came meanwhile counts from its start; one that ended is not known any more. */
function used(before, after) {
  const each = [...after].map(([id, seconds]) => Math.max(0, seconds - (before.get(id) ?? 0)));
  return { each, total: sum(each) };
}

function secondsOf(stat) {
  // Fields 14 and 15 of proc(5), counted from the state, which is field 3.
  return stat ? (Number(stat[11]) + Number(stat[12])) / TICKS_PER_SECOND : 0;
}

function residentBytes(pid) {
  try {
    const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return Number(kilobytes) * 1_024;
  } catch {
    return 0; // ended meanwhile
  }
}

function busiestToMean(values) {
  const mean = sum(values) / values.length;
  return mean > 0 ? Math.max(...values) / mean : undefined;
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}
