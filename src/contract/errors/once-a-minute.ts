import { oneLine } from './one-line.js';

const QUIET_MS = 60_000;

/** Maximum number of remembered kinds of lines. Without it, text from outside could add a kind in every call. */
const MAX_KINDS = 20;

/** Logs at most one line of each kind a minute. For lines that every call may cause. */
export class OnceAMinute {
  readonly #kinds = new Map<string, { readonly unsaid: number; readonly due: number }>();

  constructor(private readonly log: (line: string) => void) {}

  /**
   * @param kind groups lines that have the same meaning.
   * @param rest replaces `kind` when the maximum number of kinds is reached.
   */
  say(text: string, kind: string, rest = ''): void {
    const now = performance.now();
    const known = this.#hasPlaceFor(kind, now) ? kind : rest;
    const { unsaid, due } = this.#kinds.get(known) ?? { unsaid: 0, due: now };
    if (due > now) {
      this.#kinds.set(known, { unsaid: unsaid + 1, due });
      return;
    }
    this.#kinds.set(known, { unsaid: 0, due: now + QUIET_MS });
    const more = unsaid > 0 ? ` (and ${unsaid} times before, since it was last said)` : '';
    this.log(oneLine(text) + more);
  }

  #hasPlaceFor(kind: string, now: number): boolean {
    if (this.#kinds.has(kind)) return true;
    if (this.#kinds.size >= MAX_KINDS) {
      for (const [each, { due }] of this.#kinds) if (due <= now) this.#kinds.delete(each);
    }
    return this.#kinds.size < MAX_KINDS;
  }
}
