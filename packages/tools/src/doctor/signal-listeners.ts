import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Finding } from './finding.js';

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
    const files = frames.filter((frame) => isFile(pathOf(frame)));
    const outside = files.filter((frame) => !isOwn(pathOf(frame)));
    const ofApp = outside.find((frame) => !isInstalled(pathOf(frame)));
    const caller = byNest ? (ofApp ?? outside.at(-1)) : ofApp;
    // A listener that a library adds is none of the app, even if the app has called the library.
    if (caller === undefined || (!byNest && caller !== files[0])) return;
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
  const { stackTraceLimit } = Error;
  const prepareStackTrace = Reflect.get(Error, 'prepareStackTrace') as unknown;
  const holder: { stack?: NodeJS.CallSite[] } = {};
  Error.stackTraceLimit = 30;
  Error.prepareStackTrace = (_error, frames) => frames;
  Error.captureStackTrace(holder, framesOfListener);
  const sites = holder.stack ?? []; // made now, when it is read
  Object.assign(Error, { prepareStackTrace, stackTraceLimit });
  return sites.slice(sites.findIndex((site) => site.getFunctionName() === ADDS) + 1);
}

function pathOf(frame: NodeJS.CallSite): string {
  const name = frame.getFileName() ?? '';
  return name.startsWith('file:') ? fileURLToPath(name) : name;
}

/** Whether code is in a file, not in Node itself. */
function isFile(path: string): boolean {
  return /^(\/|[a-z]:\\)/i.test(path);
}

/** The files of nestjs-cluster, which may be linked to the app. */
const CORE = directoryOf('nestjs-cluster/package.json');

function isOwn(path: string): boolean {
  return path.startsWith(CORE) || path.startsWith(import.meta.dirname);
}

function directoryOf(manifest: string): string {
  try {
    return join(createRequire(process.argv[1]!).resolve(manifest), '../dist/');
  } catch {
    return import.meta.dirname; // the program will say that it is not installed
  }
}

function isInstalled(path: string): boolean {
  return /[\\/]node_modules[\\/]/.test(path);
}
