import { readdirSync, readFileSync } from 'node:fs';
import { readStat } from './process-table.mjs';
import { sum } from './statistics.mjs';

/**
 * Begins to measure what the processes of a running system use.
 *
 * @returns a function that ends the measurement. It takes the number of requests that were answered
 *   during it. It returns their cost, how evenly the workers shared them, and the memory in use.
 */
export function measureUsage(running) {
  const before = readThreads(running);
  return (requests) => {
    const after = readThreads(running);
    const front = after.front.flatMap((one) => secondsSince(before.front, one));
    const each = after.workers.map((one) => secondsSince(before.workers, one));
    const total = sum(front) + sum(each.flat());
    // If workers are threads of one process, the busiest threads are compared.
    const shares = running.threads
      ? each[0].toSorted((a, b) => b - a).slice(0, running.threads)
      : each.map(sum);
    const mean = sum(shares) / shares.length;
    const cpuMicros = requests > 0 ? (total / requests) * 1e6 : undefined;
    const user = (after.user - before.user) / (after.both - before.both);
    return {
      cpuMicros,
      userMicros: cpuMicros === undefined ? undefined : cpuMicros * user,
      systemMicros: cpuMicros === undefined ? undefined : cpuMicros * (1 - user),
      primaryCpuShare: after.front.length > 0 ? sum(front) / total : undefined,
      busiestRatio: shares.length > 1 && mean > 0 ? Math.max(...shares) / mean : undefined,
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

/** CPU time by thread, and the ticks from which it is divided into user and system time. */
function readThreads(running) {
  const [front, workers] = [running.frontPids(), running.workerPids()];
  const stats = [...front, ...workers].map((pid) => readStat(pid) ?? []);
  const user = sum(stats.map((stat) => Number(stat[11] ?? 0)));
  return {
    user,
    both: user + sum(stats.map((stat) => Number(stat[12] ?? 0))),
    front: front.map(threadsOf),
    workers: workers.map(threadsOf),
  };
}

/** CPU time of each live thread of a process, to the nanosecond. None if the process has ended. */
function threadsOf(pid) {
  const threads = new Map();
  const folder = `/proc/${pid}/task`;
  for (const thread of unlessEnded(() => readdirSync(folder)) ?? []) {
    const text = unlessEnded(() => readFileSync(`${folder}/${thread}/schedstat`, 'utf8'));
    if (text !== undefined) threads.set(thread, Number(text.split(' ')[0]) / 1e9);
  }
  return threads;
}

/** Seconds of each thread. A thread that was started after the first reading counts from its start. */
function secondsSince(before, threads) {
  const earlier = new Map(before.flatMap((each) => [...each]));
  return [...threads].map(([thread, seconds]) => seconds - (earlier.get(thread) ?? 0));
}

function residentBytes(pid) {
  const status = unlessEnded(() => readFileSync(`/proc/${pid}/status`, 'utf8'));
  return status === undefined ? 0 : Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)[1]) * 1_024;
}

/** @returns what `read` returns, or `undefined` if the process or thread has ended. */
function unlessEnded(read) {
  try {
    return read();
  } catch {
    return undefined;
  }
}
