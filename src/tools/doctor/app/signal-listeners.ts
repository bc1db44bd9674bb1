import { fileURLToPath } from 'node:url';
import { callSites } from '../../../contract/errors/call-sites.js';
import type { Finding } from '../../../observe/findings/finding.js';

/** Nest's method behind `enableShutdownHooks()`. */
const NEST_LISTENS = 'listenToShutdownSignals';

/** Signals that ask an app to end. */
const SIGNALS: ReadonlySet<string | symbol> = new Set(['SIGTERM', 'SIGINT', 'SIGHUP']);

const MAX_FRAMES = 30;

const DOCS = 'docs/shutdown-hooks.md#what-not-to-do';

/** A line of the app's code that listens to signals. */
interface Place {
  readonly where: string;
  readonly byNest: boolean;
}

/** Notes where the app itself begins to listen to signals. Libraries know what they do. */
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
            remedy: 'leave the call out',
            docs: DOCS,
          }
        : {
            name: 'signal-listener',
            level: 'problem',
            where,
            problem:
              'a listener to a signal that ends the app runs while requests are still in flight',
            remedy: 'move it into a shutdown hook, such as onApplicationShutdown()',
            docs: DOCS,
          },
    );
  }

  readonly #note = (name: string | symbol): void => {
    if (!SIGNALS.has(name)) return;
    const frames = framesOfListener();
    const byNest = frames.some((frame) => frame.getFunctionName() === NEST_LISTENS);
    const caller = byNest
      ? frames.find((frame) => isFile(frame) && !isInstalled(frame))
      : frames.find(isFile);
    if (caller === undefined || isInstalled(caller)) return;
    const where = `${pathOf(caller)}:${caller.getLineNumber()}`;
    this.#places.set(`${where} ${byNest}`, { where, byNest });
  };
}

/** Node's function behind all that add a listener; above it are those that hear of it. */
const ADDS = '_addListener';

/** Raw frames, starting with the call of `process.on()`. */
function framesOfListener(): NodeJS.CallSite[] {
  const sites = callSites(MAX_FRAMES, framesOfListener);
  return sites.slice(sites.findIndex((site) => site.getFunctionName() === ADDS) + 1);
}

/** Not one of Node's own. */
function isFile(frame: NodeJS.CallSite): boolean {
  return /^(file:|\/|[a-z]:\\)/i.test(frame.getFileName() ?? '');
}

function isInstalled(frame: NodeJS.CallSite): boolean {
  return /[\\/]node_modules[\\/]/.test(frame.getFileName() ?? '');
}

function pathOf(frame: NodeJS.CallSite): string {
  const name = frame.getFileName()!;
  return name.startsWith('file:') ? fileURLToPath(name) : name;
}
