// Tells warnings and errors in what a worker writes from the rest. Loaded by boot-output.cts, before
// anything of the app.
import util = require('node:util');

const LINE_BREAK = 10;

/** From this level on pino warns; trace is 10, fatal 60. */
const PINO_WARN = 40;

/** `[Nest] 4711  - 11/22/2026, 7:52:27 AM     LOG [NestFactory] …`, with `w0` or so of a logger of one's own. */
const NEST_LINE = /^\[[^\]]*\] \d+\b[^[]*? (LOG|DEBUG|VERBOSE|WARN|ERROR|FATAL) /;
const LOUD = /^(warn|warning|error|fatal)$/i;

/** Nest logs an error of its container under it, and ends the process: the primary shows that one. */
const LAST_WORDS = 'ExceptionHandler';

/** `undefined` = no beginning of what a logger wrote: it belongs to the line before. */
function isLoud(line: string): boolean | undefined {
  const text = util.stripVTControlCharacters(line);
  if (text.startsWith('{')) {
    try {
      const { level, context } = JSON.parse(text) as Record<string, unknown>;
      if (context === LAST_WORDS) return false;
      return typeof level === 'number' ? level >= PINO_WARN : LOUD.test(String(level));
    } catch {
      return undefined;
    }
  }
  const level = NEST_LINE.exec(text)?.[1];
  return level === undefined ? undefined : LOUD.test(level);
}

/** Tells lines that are to be seen at once from the rest. */
class LineSieve {
  #loud = false;
  #inLine = false;

  /** Parts of what is written, in order; neighbours differ. */
  sift(bytes: Buffer): { readonly loud: boolean; readonly bytes: Buffer }[] {
    const parts: { loud: boolean; start: number; end: number }[] = [];
    // What is written at once belongs together.
    if (!this.#inLine) this.#loud = false;
    for (let start = 0; start < bytes.length;) {
      const lineBreak = bytes.indexOf(LINE_BREAK, start);
      const end = lineBreak < 0 ? bytes.length : lineBreak + 1;
      if (!this.#inLine) {
        this.#loud = isLoud(bytes.toString('utf8', start, end)) ?? this.#loud;
      }
      this.#inLine = lineBreak < 0;
      const last = parts.at(-1);
      if (last?.loud === this.#loud) last.end = end;
      else parts.push({ loud: this.#loud, start, end });
      start = end;
    }
    return parts.map(({ loud, start, end }) => ({ loud, bytes: bytes.subarray(start, end) }));
  }
}

export = { LineSieve };
