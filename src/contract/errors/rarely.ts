import { oneLine } from './text.js';

const QUIET_MS = 60_000;

/** Maximum number of remembered kinds of lines. Without it, text from outside could add a kind in every call. */
const MAX_KINDS = 20;

/** Logs at most one line of each kind a minute. For lines that every call may cause. */
export class OnceAMinute {
  readonly #kinds = new Map<string, { skipped: number; readonly due: number }>();

  constructor(private readonly log: (line: string) => void) {}

  /**
   * @param kind groups lines that have the same meaning.
   * @param rest replaces `kind` when the maximum number of kinds is reached.
   */
  say(text: string, kind: string, rest = ''): void {
    const now = performance.now();
    const key = this.#hasPlaceFor(kind, now) ? kind : rest;
    const last = this.#kinds.get(key);
    if (last !== undefined && last.due > now) {
      last.skipped += 1;
      return;
    }
    this.#kinds.set(key, { skipped: 0, due: now + QUIET_MS });
    const more = last?.skipped ? ` (and ${last.skipped} times since the last such line)` : '';
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

type Log<More extends unknown[]> = (text: string, ...more: More) => void;

/** Wraps `log` so that each text is logged only once. */
export function onceEach<More extends unknown[]>(log: Log<More>): Log<More> {
  const logged = new Set<string>();
  return (text, ...more) => {
    if (logged.has(text)) return;
    logged.add(text);
    log(text, ...more);
  };
}
