import { oneLine } from '../errors/index.js';
import { reasonOf } from './thread/problem.js';

/** The same cause is said again after this time at the earliest. */
const QUIET_MS = 60_000;

/** Causes told apart at a time: one that holds a number of its own would be new with every call. */
const MAX_CAUSES = 20;

/** Says why threads were lost: each cause for each task once a minute, since it may happen with every call. */
export class LossLog {
  readonly #causes = new Map<string, { readonly unsaid: number; readonly due: number }>();

  constructor(private readonly say: (line: string) => void) {}

  lost(task: string, error: unknown): void {
    const now = performance.now();
    const reason = reasonOf(error);
    const cause = this.#causeOf(task, reason, now);
    const { unsaid, due } = this.#causes.get(cause) ?? { unsaid: 0, due: now };
    if (due > now) {
      this.#causes.set(cause, { unsaid: unsaid + 1, due });
      return;
    }
    this.#causes.set(cause, { unsaid: 0, due: now + QUIET_MS });
    const more = unsaid > 0 ? ` (and ${unsaid} times before, since it was last said)` : '';
    this.say(oneLine(`the thread of ${task} was lost: ${reason}${more}`));
  }

  /** Beyond as many as are told apart, all others of a task are one. */
  #causeOf(task: string, reason: string, now: number): string {
    const cause = `${task}: ${reason}`;
    if (this.#causes.has(cause)) return cause;
    if (this.#causes.size >= MAX_CAUSES) {
      for (const [each, { due }] of this.#causes) if (due <= now) this.#causes.delete(each);
    }
    return this.#causes.size < MAX_CAUSES ? cause : task;
  }
}
