import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { readStat, withDescendants } from './process-table.mjs';

/** PF_KTHREAD of the kernel's include/linux/sched.h. */
const KERNEL_THREAD = 0x00200000;

/** Maximum share of the machine that others use in a valid measurement. Less may be rounding. */
export const MAX_SHARE = 0.03;
/** Maximum share used by systems that wait for their turn. The timers of ten use some percent. */
const MAX_WAITING_SHARE = 0.1;
/** Maximum share of measurements that are discarded. Beyond it a result is not published. */
const MAX_DISCARDED = 0.25;

/** A system is at rest when it uses less than this share of one core for REST_MS. */
const REST_SHARE = 0.01;
const REST_MS = 1_000;
/** Longest wait for it: some systems poll. */
const REST_PATIENCE_MS = 10_000;

/** Number of other users that the error lists, and the length of each name. */
const NAMED = 8;
const NAME_LENGTH = 70;

/**
 * Begins to watch which processes use the machine.
 *
 * @returns a function that ends the watch. From the pids of the measured systems and of the waiting
 *   systems it computes what all other processes used, and what the waiting systems used.
 */
export function watchMachine() {
  const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));
  const before = readMachine();
  return ({ pids, waiting = [] }) => {
    const after = readMachine();
    const seconds = (after.atMs - before.atMs) / 1_000;
    const capacity = seconds * ticksPerSecond * availableParallelism();
    // Load generators are children of this process.
    return {
      others: othersBetween(before, after, [process.pid, ...pids, ...waiting], capacity),
      waiting: (ticksOf(after, waiting) - ticksOf(before, waiting)) / capacity,
    };
  };
}

/** The processes of a system. Their descendants belong to it too. */
export function pidsOf(running) {
  return [...running.frontPids(), ...running.workerPids()];
}

/** Waits until a start has nothing left to do, such as a thread that still loads the app. */
export async function untilAtRest(running) {
  const deadline = performance.now() + REST_PATIENCE_MS;
  for (let share = 1; share >= REST_SHARE && performance.now() < deadline;) {
    const endWatch = watchMachine();
    await delay(REST_MS);
    share = endWatch({ pids: [], waiting: pidsOf(running) }).waiting * availableParallelism();
  }
}

/**
 * Reads the CPU time used so far, in clock ticks: `work` of the whole machine, `stolen` by other
 * virtual machines, and `ticks` of each process with the ended children that it has waited for.
 */
function readMachine() {
  const processes = new Map();
  for (const name of readdirSync('/proc')) {
    const stat = /^\d+$/.test(name) ? readStat(name) : undefined;
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
 * Computes how much other processes than the benchmark's used the machine between two readings. The
 * machine's total includes processes that are invisible from here. Interrupts are not counted,
 * because the load itself causes most of them.
 *
 * @param own pids that belong to the benchmark, with all their descendants.
 * @param capacity clock ticks of all cores.
 * @returns `share` of the machine, 0..1, and `top`: pids and shares, the largest first.
 */
export function othersBetween(before, after, own, capacity) {
  const kernel = [...after.processes].filter(([, { kernel }]) => kernel).map(([pid]) => pid);
  const ours = [...own, ...kernel];
  const work = after.work - before.work - ticksOf(after, ours) + ticksOf(before, ours);
  const known = withDescendants(ours, after.processes);
  const top = [...after.processes]
    .filter(([pid]) => !known.has(pid))
    .map(([pid, { ticks }]) => {
      const used = ticks - (before.processes.get(pid)?.ticks ?? 0);
      return { pid, share: used / capacity };
    })
    .filter(({ share }) => share > 0)
    .toSorted((a, b) => b.share - a.share);
  return { share: (Math.max(0, work) + after.stolen - before.stolen) / capacity, top };
}

/** Clock ticks of processes and all their descendants. */
function ticksOf({ processes }, pids) {
  return [...withDescendants(pids, processes)].reduce(
    (sum, pid) => sum + processes.get(pid).ticks,
    0,
  );
}

/** Other users of the machine would distort the result. Printed without a stack. */
export class BusyMachineError extends Error {}

/** Decides which measurements count, and whether the rest can be published. */
export class Disturbances {
  discarded = 0;
  #planned = 0;
  #measured = 0;
  #users = new Map(); // highest share, by name
  #forced;
  #nameOf;

  /** @param forced whether everything counts, for a result that is not published. */
  constructor({ forced = false, nameOf = commandOf } = {}) {
    this.#forced = forced;
    this.#nameOf = nameOf;
  }

  /** Announces measurements. */
  plan(count) {
    this.#planned += count;
  }

  /**
   * Judges one measurement by the result of {@link watchMachine}.
   *
   * @returns `disturbed`: the reason in words, if any; and whether the measurement `counts`.
   */
  judge({ others, waiting = 0 }) {
    this.#measured += 1;
    const reasons = [
      others.share > MAX_SHARE && `others used ${percent(others.share)} of the machine`,
      waiting > MAX_WAITING_SHARE && `systems that waited used ${percent(waiting)} of it`,
    ].filter(Boolean);
    if (reasons.length === 0) return { counts: true };
    this.discarded += 1;
    for (const { pid, share } of others.top.slice(0, NAMED)) {
      const name = this.#nameOf(pid);
      this.#users.set(name, Math.max(share, this.#users.get(name) ?? 0));
    }
    return { disturbed: reasons.join(', '), counts: this.#forced };
  }

  /** @throws BusyMachineError once too many are discarded. */
  check() {
    if (!this.#forced && this.discarded > MAX_DISCARDED * this.#planned) this.refuse();
  }

  /** @throws BusyMachineError */
  refuse() {
    const users = [...this.#users].toSorted(([, a], [, b]) => b - a).slice(0, NAMED);
    const found = users.map(([name, share]) => `\n  up to ${percent(share)} ${name}`);
    throw new BusyMachineError(
      `the machine is in use: ${this.discarded} of ${this.#measured} measurements were disturbed (of ${this.#planned} at most ${percent(MAX_DISCARDED)} may be); end what else runs, or see the figures with --force, which publishes nothing${found.join('')}`,
    );
  }
}

function percent(share) {
  return `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
}

/** The command line and pid of a process, so that a user can end it. */
function commandOf(pid) {
  const read = (file) => readFileSync(`/proc/${pid}/${file}`, 'utf8');
  try {
    // oxlint-disable-next-line no-control-regex -- arguments are separated by NUL, and may hold anything
    const command = (read('cmdline') || read('comm')).replace(/[\x00-\x1f\x7f]+/g, ' ').trim();
    return `${command.slice(0, NAME_LENGTH)} (pid ${pid})`;
  } catch {
    return `a process that has ended (pid ${pid})`;
  }
}
