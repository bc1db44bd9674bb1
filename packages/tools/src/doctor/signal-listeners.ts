import { realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, sep } from 'node:path';
import type { Finding } from './finding.js';

/** The signals that ask an app to end. */
const SIGNALS: ReadonlySet<string | symbol> = new Set(['SIGTERM', 'SIGINT', 'SIGHUP']);

/** The file and line of a stack frame. Frames of Node itself have no path. */
const PLACE = /(?:\(|at )(?:file:\/\/)?(\/[^()]+:\d+):\d+\)?$/;

/** Node's function that `on()`, `once()` and `prependListener()` call. */
const ADDS = ' _addListener (node:events:';

/** Notes where the app's code adds listeners to signals. Listeners of libraries are ignored. */
export class SignalListeners {
  readonly #places = new Set<string>();
  /** The files of nestjs-cluster, which may be linked to the app. */
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
      problem: 'a listener for a signal that ends the app runs while requests are still in flight',
      remedy: 'move it into a shutdown hook, such as onApplicationShutdown()',
    }));
  }

  readonly #note = (signal: string | symbol): void => {
    if (!SIGNALS.has(signal)) return;
    const frames = (new Error().stack ?? '').split('\n');
    // The frames above this function of Node emit 'newListener', and a package may have replaced `emit()`.
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
    // resolve() does not always follow a link: after other lookups, Node 20 returned the link's path.
    return join(realpathSync(createRequire(process.argv[1]!).resolve(manifest)), '../dist/');
  } catch {
    return undefined; // the program will say that it is not installed
  }
}
