import { realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, sep } from 'node:path';
import type { Finding } from './finding.js';

/** The signals that ask an app to exit. */
const SIGNALS: ReadonlySet<string | symbol> = new Set(['SIGTERM', 'SIGINT', 'SIGHUP']);

/** The file and line of a stack frame. Frames of Node itself have no path. */
const PLACE = /(?:\(|at )(?:file:\/\/)?(\/[^()]+:\d+):\d+\)?$/;

/** Node's function that `on()`, `once()` and `prependListener()` call. */
const ADDS = ' _addListener (node:events:';

/** Records where the app's code adds listeners for signals. Ignores listeners of libraries. */
export class SignalListeners {
  readonly #places = new Set<string>();
  /** The directory of nestjs-cluster. With npm link, it may be elsewhere. */
  readonly #own = directoryOf('nestjs-cluster/package.json');

  constructor() {
    process.on('newListener', this.#note);
  }

  /** Stops watching and returns the findings so far. */
  end(): Finding[] {
    process.off('newListener', this.#note);
    return [...this.#places].map((where) => ({
      name: 'signal-listener',
      where,
      problem: 'a listener for a termination signal runs while requests are still in flight',
      remedy: 'move it into a shutdown hook, such as onApplicationShutdown()',
    }));
  }

  readonly #note = (signal: string | symbol): void => {
    if (!SIGNALS.has(signal)) return;
    const frames = (new Error().stack ?? '').split('\n');
    // The caller's frame follows `_addListener`. The frame count varies, as packages may replace `emit()`.
    const adds = frames.findIndex((line) => line.includes(ADDS));
    const caller = frames
      .slice(adds + 1)
      .map((line) => PLACE.exec(line)?.[1])
      .find((place) => place !== undefined);
    if (caller === undefined || caller.includes(`${sep}node_modules${sep}`)) return;
    if (this.#own === undefined || !caller.startsWith(this.#own)) this.#places.add(caller);
  };
}

function directoryOf(manifest: string): string | undefined {
  try {
    // realpathSync() is needed, because resolve() on Node 20 sometimes returns the path of a symlink.
    return join(realpathSync(createRequire(process.argv[1]!).resolve(manifest)), '../dist/');
  } catch {
    return undefined; // the app itself reports that the package is missing
  }
}
