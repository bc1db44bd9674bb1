import { readFileSync, statSync } from 'node:fs';
import { type CallFrame, pathOf } from './profile.js';

/** A kind of work on which a method spends its time. */
export type Kind =
  'code' | 'regexp' | 'json' | 'files' | 'crypto' | 'compression' | 'processes' | 'rows';

interface Remedy {
  readonly kind: Exclude<Kind, 'code'>;
  /** Matches a frame, formatted as `url function`, on the path from the method to the innermost call. */
  readonly frame?: RegExp;
  /** Matches the running line of source code. V8 shows no frame for most built-in functions. */
  readonly line?: RegExp;
  readonly text: string;
}

const DRIVERS =
  'pg|pg-protocol|pg-types|postgres|mysql2?|mariadb|tedious|oracledb|mongodb|bson|mongoose|typeorm|sequelize|knex|@mikro-orm/[^/]+|@prisma/[^/]+|drizzle-orm|better-sqlite3|ioredis|redis-parser';

/** Remedies that help more than a thread. The first match applies. */
const REMEDIES: readonly Remedy[] = [
  {
    kind: 'files',
    frame: /^node:fs \w+Sync$/,
    text: 'the time is spent in synchronous file calls: use node:fs/promises, or read the file once',
  },
  {
    kind: 'crypto',
    frame: /^node:internal\/crypto\/\w+ \w+Sync$/,
    text: 'the time is spent in a synchronous function of node:crypto: call the variant without Sync, which Node runs in a thread',
  },
  {
    kind: 'compression',
    frame: /^node:zlib \w+Sync$/,
    text: 'the time is spent in a synchronous function of node:zlib: call the variant without Sync, which Node runs in a thread',
  },
  {
    kind: 'processes',
    frame: /^node:child_process \w+Sync$/,
    text: 'the function waits for a child process: use spawn() or execFile() from node:child_process',
  },
  {
    kind: 'rows',
    frame: new RegExp(`/node_modules/(?:${DRIVERS})/.* `),
    text: 'a database driver spends the time converting rows to objects: query fewer rows (LIMIT, pages) or fewer columns, or stream them',
  },
  {
    kind: 'json',
    line: /\bJSON\.(?:parse|stringify)\(/,
    text: 'the time is spent on megabytes of JSON: send less data, send it in pages, or stream it; a thread would not help, because the object would be copied',
  },
  {
    kind: 'regexp',
    // The frame of a compiled expression. An interpreted expression has no frame.
    frame: /^ RegExp: /,
    line: /\.(?:test|exec|match|matchAll|replace|replaceAll|search|split)\(/,
    text: 'the time is spent in a regular expression or a text search: if an expression backtracks, rewrite it without nested or overlapping repetitions, or limit the length of its input',
  },
];

export function remedyOf(kind: Kind): string | undefined {
  return REMEDIES.find((each) => each.kind === kind)?.text;
}

/** Whether such code may wait in the kernel, where V8 takes no samples. */
export function mayWait(kind: Kind): boolean {
  return kind === 'files' || kind === 'processes';
}

/** A longer line is probably minified, and does not show which part runs. */
const MAX_LINE = 300;

export class KindsOfWork {
  readonly #files = new Map<string, readonly string[]>();

  /**
   * @param path the frames from the innermost call to the method, without the method's callers.
   * @param ticks samples of the innermost call by line number, from 1.
   * @returns the kinds with their shares, which add up to 1.
   */
  of(
    path: readonly CallFrame[],
    ticks: readonly { readonly line: number; readonly ticks: number }[],
  ): readonly (readonly [Kind, number])[] {
    const frames = path.map(({ url, functionName }) => `${url} ${functionName}`);
    const called = REMEDIES.find(({ frame }) => frame && frames.some((each) => frame.test(each)));
    if (called !== undefined) return [[called.kind, 1]];
    const all = ticks.reduce((sum, each) => sum + each.ticks, 0);
    if (all === 0 || path[0] === undefined) return [['code', 1]];
    const lines = this.#linesOf(path[0].url);
    return ticks.map((each) => {
      const text = lines[each.line - 1] ?? '';
      const running = text.length > MAX_LINE ? undefined : REMEDIES.find((r) => r.line?.test(text));
      return [running?.kind ?? 'code', each.ticks / all];
    });
  }

  /** The lines of a file; none if the file does not exist or is not a regular file. */
  #linesOf(url: string): readonly string[] {
    const known = this.#files.get(url);
    if (known !== undefined) return known;
    let lines: readonly string[] = [];
    try {
      const path = pathOf(url);
      if (path.startsWith('/') && statSync(path).size < 50e6) {
        lines = readFileSync(path, 'utf8').split('\n');
      }
    } catch {
      // the release may have been removed
    }
    this.#files.set(url, lines);
    return lines;
  }
}
