import { readFileSync } from 'node:fs';

/** Maximum share of the machine that others use in a valid measurement. Less may be rounding. */
export const MAX_SHARE = 0.03;
/** Maximum share used by systems that wait for their turn. The timers of ten use some percent. */
export const MAX_WAITING_SHARE = 0.1;
/** Maximum share of measurements that are discarded. Beyond it a result is not published. */
export const MAX_DISCARDED = 0.25;

const NAMED = 8;
const NAME_LENGTH = 70;

/** Other users of the machine would distort the result. Printed without a stack. */
export class BusyMachineError extends Error {}

/** Decides which measurements count, and whether what is left of them can be published. */
export class Disturbances {
  #planned = 0;
  #discarded = 0;
  #measured = 0;
  #users = new Map(); // highest share, by name
  #forced;
  #nameOf;

  /** @param forced whether everything counts, for a result that nobody publishes. */
  constructor({ forced = false, nameOf = commandOf } = {}) {
    this.#forced = forced;
    this.#nameOf = nameOf;
  }

  get discarded() {
    return this.#discarded;
  }

  /** Announces measurements. */
  plan(count) {
    this.#planned += count;
  }

  /**
   * Judges one measurement.
   *
   * @param others usage by other processes during the measurement, from `othersBetween()`.
   * @param waiting share of the machine that was used by systems that were not measured.
   * @returns `disturbed`: the reason in words, if any; and whether the measurement `counts`.
   */
  judge({ others, waiting = 0 }) {
    this.#measured += 1;
    const reasons = [
      others.share > MAX_SHARE && `others used ${percent(others.share)} of the machine`,
      waiting > MAX_WAITING_SHARE && `systems that waited used ${percent(waiting)} of it`,
    ].filter(Boolean);
    if (reasons.length === 0) return { counts: true };
    this.#discarded += 1;
    for (const { pid, share } of others.top.slice(0, NAMED)) {
      const name = this.#nameOf(pid);
      this.#users.set(name, Math.max(share, this.#users.get(name) ?? 0));
    }
    const disturbed = reasons.join(', ');
    return { disturbed, counts: this.#forced };
  }

  /** @throws BusyMachineError once too many are discarded. */
  check() {
    if (!this.#forced && this.#discarded > MAX_DISCARDED * this.#planned) this.refuse();
  }

  /** @throws BusyMachineError */
  refuse() {
    const users = [...this.#users].toSorted(([, a], [, b]) => b - a).slice(0, NAMED);
    const found = users.map(([name, share]) => `\n  up to ${percent(share)} ${name}`);
    throw new BusyMachineError(
      `the machine is in use: ${this.#discarded} of ${this.#measured} measurements were disturbed (of ${this.#planned} at most ${percent(MAX_DISCARDED)} may be); end what else runs, or see the figures with --force, which publishes nothing${found.join('')}`,
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
