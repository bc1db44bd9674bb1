import { oneLine } from './text.js';

const QUIET_MS = 60_000;

/** Logs at most one line of each kind a minute. For lines that every call may cause. */
export class OnceAMinute {
  readonly #kinds = new Map<string, { skipped: number; readonly due: number }>();

  constructor(private readonly log: (line: string) => void) {}

  /** @param kind groups lines that have the same meaning. There must be few kinds. */
  say(text: string, kind: string): void {
    const now = performance.now();
    const last = this.#kinds.get(kind);
    if (last !== undefined && last.due > now) {
      last.skipped += 1;
      return;
    }
    this.#kinds.set(kind, { skipped: 0, due: now + QUIET_MS });
    const more = last?.skipped ? ` (and ${last.skipped} times since the last such line)` : '';
    this.log(oneLine(text) + more);
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
