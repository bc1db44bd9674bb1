import type { ErrorReport } from '../ipc/index.js';

/** A worker, as far as its error at boot is concerned. */
interface Booting {
  readonly identity: { readonly slot: number };
  readonly error: ErrorReport | null;
  /** What {@link BootErrors.mayPrint} said when it was forked. */
  readonly printsBootError: boolean;
}

/**
 * Has each error that keeps workers from coming up printed whole once, however
 * many slots and attempts it fails: one worker at a time may print its own, and
 * none may print what has been printed.
 */
export class BootErrors {
  /** Whether one that may print is still coming up. */
  #awaited = false;
  #generation = 0;
  readonly #reported = new Set<string>();
  readonly #printed = new Set<string>();
  /** Of each reason for which workers failed, the slots that still do. */
  readonly #shown = new Map<string, Set<number>>();
  /** Of each slot its last error, and how often it has failed. */
  readonly #lastOf = new Map<number, { readonly key: string; readonly times: number }>();

  /** Whether the next worker of a slot prints its error. Says yes to one, until that has come up or failed. */
  mayPrint(slot: number, generation: number): boolean {
    // Another reload is another attempt of somebody's.
    if (generation > this.#generation) this.cameUp();
    this.#generation = Math.max(this.#generation, generation);
    const last = this.#lastOf.get(slot);
    if (last === undefined ? this.#printed.size > 0 : this.#printed.has(last.key)) return false;
    // Whoever may print could be stuck: a slot that has failed again meanwhile does not wait for it.
    if (this.#awaited && (last?.times ?? 0) < 2) return false;
    this.#awaited = true;
    return true;
  }

  /** A worker has come up: what fails from now on is news. Without a slot: also what is shown. */
  cameUp(slot?: number): void {
    for (const [reason, slots] of this.#shown) {
      if (slot !== undefined) slots.delete(slot);
      if (slot === undefined || slots.size === 0) this.#shown.delete(reason);
    }
    this.#awaited = false;
    this.#reported.clear();
    this.#printed.clear();
    this.#lastOf.clear();
  }

  /**
   * Whether what a worker kept back is to be seen, as it does not come up. No other that fails for
   * the same reason has been shown.
   *
   * @param detail how it ended, where it has no error.
   */
  mayShow({ identity: { slot }, error, printsBootError }: Booting, detail: string): boolean {
    // Of such an error Node alone knows the place, and shows it where it prints the error itself.
    if (error?.name === 'SyntaxError' && this.#awaited && !printsBootError) return false;
    const reason = error === null ? detail : `${error.name}: ${error.message}`;
    const slots = this.#shown.get(reason);
    this.#shown.set(reason, (slots ?? new Set()).add(slot));
    return slots === undefined;
  }

  /** A worker has ended before it came up. Returns its error: without the stack where that has been reported. */
  failed({ identity: { slot }, error, printsBootError }: Booting): ErrorReport | null {
    if (printsBootError) this.#awaited = false;
    if (error === null) return null;
    const { name, message, code } = error;
    const key = `${name}: ${message}`;
    this.#lastOf.set(slot, { key, times: (this.#lastOf.get(slot)?.times ?? 0) + 1 });
    if (printsBootError) this.#printed.add(key);
    if (!this.#reported.has(key)) {
      this.#reported.add(key);
      return error;
    }
    return { name, message, code };
  }
}
