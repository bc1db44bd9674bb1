import { readFileSync } from 'node:fs';

/** Of the machine: what others may use during a measurement that counts. Less is what rounding makes. */
export const MAX_SHARE = 0.03;
/** Of the machine: what systems that wait may use. Each of them has its timers, ten have some percent. */
export const MAX_WAITING_SHARE = 0.1;
/** Of the measurements: with more of them discarded a result is not published. */
export const MAX_DISCARDED = 0.25;

const NAMED = 8;
const NAME_LENGTH = 70;

/** A result that would be of the machine's other users as well. One message, no stack. */
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
   * @param others what others used meanwhile, see `othersBetween()`.
   * @param waiting share of the machine that the systems used which were not measured.
   * @returns why it was disturbed, in words, undefined where it was not; and whether it `counts`.
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

/** What was started, for somebody who is to end it. */
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
