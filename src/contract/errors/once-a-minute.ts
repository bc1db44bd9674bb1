import { oneLine } from './one-line.js';

/** The shortest time between two lines of the same kind. */
const QUIET_MS = 60_000;

/** The limit of kinds known at a time: text from outside may be different in every call. */
const MAX_KINDS = 20;

/** Logs at most one line of each kind a minute: every call may cause one. */
export class OnceAMinute {
  readonly #kinds = new Map<string, { readonly unsaid: number; readonly due: number }>();

  constructor(private readonly log: (line: string) => void) {}

  /**
   * @param kind lines of one kind have the same meaning.
   * @param rest the kind of a line when the limit of known kinds is reached.
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
