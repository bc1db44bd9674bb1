import { readFileSync } from 'node:fs';
import { cpuBetween, readCpuTime, threadsBetween } from './cpu-time.mjs';

/**
 * Begins to measure what the processes of a running system use.
 *
 * @returns a function that ends the measurement. It takes the number of requests that were answered
 *   during it. It returns their cost, how evenly the workers shared them, and the memory in use.
 */
export function measureUsage(running) {
  const before = readCpu(running);
  return (requests) => {
    const after = readCpu(running);
    const front = used(before.front, after.front);
    const workers = used(before.workers, after.workers);
    const total = front.total + workers.total;
    // If workers are threads of one process, the shares of the threads are compared.
    const shares = running.threads
      ? busiest(used(before.workers, after.workers, threadsBetween), running.threads)
      : workers.each;
    const cpuMicros = requests > 0 ? (total / requests) * 1e6 : undefined;
    const userShare = userShareOf(
      [before.front, before.workers].flatMap((part) => [...part]),
      [after.front, after.workers].flatMap((part) => [...part]),
    );
    return {
      cpuMicros,
      cpuUserMicros: cpuMicros && cpuMicros * userShare,
      cpuSystemMicros: cpuMicros && cpuMicros * (1 - userShare),
      primaryCpuShare: after.front.size > 0 ? front.total / total : undefined,
      busiestRatio: shares.length > 1 ? busiestToMean(shares) : undefined,
      ...readMemory(running),
    };
  };
}

/** Resident memory in bytes: of primary or proxy, of a worker (the workers' mean), and in total. */
export function readMemory(running) {
  const front = running.frontPids().map(residentBytes);
  const workers = running.workerPids().map(residentBytes);
  return {
    frontRssBytes: front.length > 0 ? sum(front) : undefined,
    // Memory cannot be split between workers that are threads of one process.
    workerRssBytes:
      running.threads || workers.length === 0 ? undefined : sum(workers) / workers.length,
    totalRssBytes: sum(front) + sum(workers),
  };
}

function readCpu(running) {
  const read = (pids) => new Map(pids.map((pid) => [pid, readCpuTime(pid)]));
  return { front: read(running.frontPids()), workers: read(running.workerPids()) };
}

/** A process started after the first reading counts from its start. An ended one is left out. */
function used(before, after, between = (...readings) => [cpuBetween(...readings)]) {
  const each = [...after].flatMap(([pid, reading]) => between(before.get(pid), reading));
  return { each, total: sum(each) };
}

/** Share of the CPU time that was user time, by the ticks of the processes. */
function userShareOf(before, after) {
  const earlier = new Map(before);
  const since = (key) =>
    sum(after.map(([pid, reading]) => reading[key] - (earlier.get(pid)?.[key] ?? 0)));
  return since('userSeconds') / since('seconds');
}

/** The threads that serve requests: the busiest ones, as many as there are workers. */
function busiest({ each }, workers) {
  return each.toSorted((a, b) => b - a).slice(0, workers);
}

function residentBytes(pid) {
  try {
    const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return Number(kilobytes) * 1_024;
  } catch {
    return 0; // the process has ended
  }
}

function busiestToMean(values) {
  const mean = sum(values) / values.length;
  return mean > 0 ? Math.max(...values) / mean : undefined;
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}
