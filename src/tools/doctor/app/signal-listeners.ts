import { fileURLToPath } from 'node:url';
import { callSites } from '../../../contract/errors/call-sites.js';
import { OWN_DIRECTORY } from '../../../contract/process/own-directory.js';
import type { Finding } from '../../../observe/findings/finding.js';

/** The method by which Nest's `enableShutdownHooks()` adds its listeners. */
const NEST_LISTENS = 'listenToShutdownSignals';

/** The signals that ask an app to end. */
const SIGNALS: ReadonlySet<string | symbol> = new Set(['SIGTERM', 'SIGINT', 'SIGHUP']);

/** A line of the app's code that adds a listener to a signal. */
interface Place {
  readonly where: string;
  readonly byNest: boolean;
}

/** Notes where the app's own code adds listeners to signals. Listeners of libraries are ignored. */
export class SignalListeners {
  readonly #places = new Map<string, Place>();

  constructor() {
    process.on('newListener', this.#note);
  }

  /** Stops watching and returns the findings so far. */
  end(): Finding[] {
    process.off('newListener', this.#note);
    return [...this.#places.values()].map(({ where, byNest }) =>
      byNest
        ? {
            name: 'shutdown-hooks',
            level: 'note',
            where,
            problem: 'enableShutdownHooks() is taken back: the hooks run once, after the drain',
            remedy: 'leave the call out, unless a package makes it',
          }
        : {
            name: 'signal-listener',
            level: 'problem',
            where,
            problem:
              'a listener to a signal that ends the app runs while requests are still in flight',
            remedy: 'move it into a shutdown hook, such as onApplicationShutdown()',
          },
    );
  }

  readonly #note = (signal: string | symbol): void => {
    if (!SIGNALS.has(signal)) return;
    const frames = framesOfListener();
    const byNest = frames.some((frame) => frame.getFunctionName() === NEST_LISTENS);
    const files = frames.filter(isOfApp);
    const caller = byNest ? (files.find((frame) => !isInstalled(frame)) ?? files.at(-1)) : files[0];
    if (caller === undefined || (!byNest && isInstalled(caller))) return;
    const where = `${pathOf(caller)}:${caller.getLineNumber()}`;
    this.#places.set(`${where} ${byNest}`, { where, byNest });
  };
}

/**
 * Node's internal function that `on()`, `once()` and `prependListener()` call. The frames above it
 * are the listeners of 'newListener'.
 */
const ADDS = '_addListener';

/** The stack frames, at most 30, starting with the call of `process.on()`. */
function framesOfListener(): NodeJS.CallSite[] {
  const sites = callSites(30, framesOfListener);
  return sites.slice(sites.findIndex((site) => site.getFunctionName() === ADDS) + 1);
}

/** Whether the code of a frame is in a file of the app, not in Node itself or in this package. */
function isOfApp(frame: NodeJS.CallSite): boolean {
  const path = pathOf(frame);
  return /^(\/|[a-z]:\\)/i.test(path) && !(OWN_DIRECTORY && path.startsWith(OWN_DIRECTORY));
}

function pathOf(frame: NodeJS.CallSite): string {
  const name = frame.getFileName() ?? '';
  return name.startsWith('file:') ? fileURLToPath(name) : name;
}

function isInstalled(frame: NodeJS.CallSite): boolean {
  return /[\\/]node_modules[\\/]/.test(frame.getFileName() ?? '');
}
