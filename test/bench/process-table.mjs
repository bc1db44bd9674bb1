import { readdirSync, readFileSync } from 'node:fs';

/**
 * Every process that runs, by pid: its parent, and when it was started, in ticks since boot. The
 * start time distinguishes it from a later process with the same pid. Zombies are left out.
 */
export function readProcesses() {
  const processes = new Map();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const stat = readStat(name);
    if (stat === undefined || stat[0] === 'Z' || stat[0] === 'X') continue;
    processes.set(Number(name), { parent: Number(stat[1]), startedAt: Number(stat[19]) });
  }
  return processes;
}

/** The given processes that still run, and all their descendants. */
export function withDescendants(pids, processes = readProcesses()) {
  const found = new Set([...pids].filter((pid) => processes.has(pid)));
  for (let size = -1; size !== found.size;) {
    size = found.size;
    for (const [pid, { parent }] of processes) if (found.has(parent)) found.add(pid);
  }
  return found;
}

/** The live workers that a primary of node:cluster has forked. */
export function clusterWorkers(primary) {
  return [...readProcesses()]
    .filter(([pid, { parent }]) => parent === primary && hasVariable(pid, 'NODE_UNIQUE_ID='))
    .map(([pid]) => pid);
}

/** Whether a process was started with this in its environment: `NAME=` or `NAME=value`. */
export function hasVariable(pid, start) {
  try {
    return `\0${readFileSync(`/proc/${pid}/environ`, 'latin1')}`.includes(`\0${start}`);
  } catch {
    return false; // it has ended, or belongs to another user
  }
}

/** The fields of /proc/<pid>/stat after the command's name: state, ppid, … */
export function readStat(pid) {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
  } catch {
    return undefined; // it has ended
  }
}

/** @returns whether it was there to be signalled. */
export function signal(pid, name) {
  try {
    return process.kill(pid, name);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
    return false; // the process has ended
  }
}
