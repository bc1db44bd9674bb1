import { oneLine } from './one-line.js';

/** The same is said again after this time at the earliest. */
const QUIET_MS = 60_000;

/** Kinds told apart at a time: text from outside may be new with every call. */
const MAX_KINDS = 20;

/** Says a line of each kind once a minute: it may be true of every call. */
export class OnceAMinute {
  readonly #kinds = new Map<string, { readonly unsaid: number; readonly due: number }>();

  constructor(private readonly log: (line: string) => void) {}

  /**
   * @param kind lines of one kind say the same.
   * @param rest the kind of all lines beyond the kinds that are told apart.
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
