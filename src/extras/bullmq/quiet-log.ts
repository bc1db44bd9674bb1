import { oneLine } from '../../errors/index.js';

/** The same is said again after this time at the earliest. */
const QUIET_MS = 60_000;

/** Lines told apart at a time. */
const MAX_KINDS = 20;

/** Ids of jobs and scripts, places, times: by them each line would be new. */
const NUMBERS = /[\da-f]{8,}|\d+/gi;

/** Says a line once a minute: what Redis refuses it refuses for every call. */
export class QuietLog {
  readonly #kinds = new Map<string, { unsaid: number; due: number }>();

  constructor(private readonly say: (line: string) => void) {}

  warn(text: string): void {
    const line = oneLine(text);
    const now = performance.now();
    const kind = this.#kindOf(line.replaceAll(NUMBERS, '#'), now);
    const { unsaid, due } = this.#kinds.get(kind) ?? { unsaid: 0, due: now };
    if (due > now) {
      this.#kinds.set(kind, { unsaid: unsaid + 1, due });
      return;
    }
    this.#kinds.set(kind, { unsaid: 0, due: now + QUIET_MS });
    this.say(unsaid > 0 ? `${line} (and ${unsaid} times before, since it was last said)` : line);
  }

  /** Beyond as many as are told apart, all others are one. */
  #kindOf(kind: string, now: number): string {
    if (this.#kinds.has(kind)) return kind;
    if (this.#kinds.size >= MAX_KINDS) {
      for (const [each, { due }] of this.#kinds) if (due <= now) this.#kinds.delete(each);
    }
    return this.#kinds.size < MAX_KINDS ? kind : '';
  }
}
