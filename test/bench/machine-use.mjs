import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { TICKS_PER_SECOND } from './cpu-time.mjs';
import { readStat, withDescendants } from './process-table.mjs';

/** PF_KTHREAD of the kernel's include/linux/sched.h. */
const KERNEL_THREAD = 0x00200000;

/**
 * Reads the CPU time that the machine and each of its processes have used so far.
 *
 * @returns `atMs`; clock ticks of `work` (user and system) and `stolen` (by other virtual
 *   machines); and by pid each process's `parent`, whether it is a thread of the `kernel`, and the
 *   `ticks` of the process and of the children that it has waited for. An ended process is included
 *   until its parent has waited for it.
 */
export function readMachine() {
  const processes = new Map();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const stat = readStat(name);
    if (stat === undefined) continue;
    const ticks = [11, 12, 13, 14].reduce((sum, field) => sum + Number(stat[field]), 0);
    const kernel = (Number(stat[6]) & KERNEL_THREAD) !== 0;
    processes.set(Number(name), { parent: Number(stat[1]), ticks, kernel });
  }
  const [, user, nice, system, , , , , stolen] = readFileSync('/proc/stat', 'utf8')
    .split('\n', 1)[0]
    .split(/\s+/)
    .map(Number);
  return { atMs: performance.now(), work: user + nice + system, stolen, processes };
}

/**
 * How much other processes than the benchmark's used the machine between two readings.
 *
 * The kernel's total includes processes that cannot be seen from here or that no parent waited for,
 * so the part of the total that no visible process has is theirs. Interrupts are not counted: the
 * load itself causes most of them.
 *
 * @param own pids that belong to the benchmark, with all their descendants.
 * @returns `share` of the machine, 0..1, and `top`: pids and shares, the largest first.
 */
export function othersBetween(before, after, own, cores = availableParallelism()) {
  const ours = new Set([
    ...withDescendants(own, before.processes),
    ...withDescendants(own, after.processes),
  ]);
  const capacity = capacityBetween(before, after, cores);
  const used = ticksBetween(before.processes, after.processes);
  const all = [...used].map(([pid, ticks]) => ({
    pid,
    ticks,
    kind: kindOf(pid, ours, after.processes),
  }));
  const ticksOf = (wanted) =>
    all.reduce((sum, { ticks, kind }) => sum + (kind === wanted ? ticks : 0), 0);
  const unseen = after.work - before.work - ticksOf('ours') - ticksOf('kernel');
  const ticks = Math.max(0, ticksOf('other'), unseen) + (after.stolen - before.stolen);
  return {
    share: ticks / capacity,
    top: all
      .filter((one) => one.kind === 'other' && one.ticks > 0)
      .toSorted((a, b) => b.ticks - a.ticks)
      .map((one) => ({ pid: one.pid, share: one.ticks / capacity })),
  };
}

/** Share of the machine that these processes used between two readings, with their descendants. */
export function shareBetween(before, after, pids, cores = availableParallelism()) {
  const own = withDescendants(pids, after.processes);
  const capacity = capacityBetween(before, after, cores);
  const used = ticksBetween(before.processes, after.processes);
  return [...own].reduce((sum, pid) => sum + used.get(pid), 0) / capacity;
}

/** Clock ticks that there were, of all cores. */
function capacityBetween(before, after, cores) {
  return (((after.atMs - before.atMs) * TICKS_PER_SECOND) / 1_000) * cores;
}

/** By pid. The ticks of one that ended are now its parent's, who had none of them before. */
function ticksBetween(before, after) {
  const used = new Map(
    [...after].map(([pid, { ticks }]) => [pid, ticks - (before.get(pid)?.ticks ?? 0)]),
  );
  for (const [pid, { ticks }] of before) {
    if (after.has(pid)) continue;
    let heir = pid;
    while (before.has(heir) && !after.has(heir)) heir = before.get(heir).parent;
    if (used.has(heir)) used.set(heir, used.get(heir) - ticks);
  }
  return used;
}

function kindOf(pid, ours, processes) {
  if (ours.has(pid)) return 'ours';
  return processes.get(pid).kernel ? 'kernel' : 'other';
}
