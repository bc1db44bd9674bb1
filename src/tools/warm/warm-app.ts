import { pathToFileURL } from 'node:url';
import {
  ClusterConfigurationError,
  NotMeasuredError,
  oneLine,
} from '../../contract/errors/index.js';
import {
  compileCacheDirectory,
  filesIn,
  NODE_HAS_COMPILE_CACHE,
  openCompileCache,
} from '../../contract/process/compile-cache.js';
import { besideThis } from '../../contract/process/own-file.js';
import type { Interruption } from '../app/interruption.js';
import { runHost } from '../app/run-host.js';

/** The compile cache of an app after `nestjs-cluster warm`. */
export interface WarmCache {
  readonly directory: string;
  /** Number of all files in the directory, including files of earlier runs. */
  readonly files: number;
  readonly bytes: number;
  readonly ready: boolean;
  /** Why the app did not become ready: the rest of a sentence that begins with "the app". */
  readonly why: string | null;
}

const EXAMINER = pathToFileURL(besideThis('dist/programs/warm-examiner.js')!).href;

/**
 * Starts an app once with Node's compile cache, so that the cache has the app's code, and ends all
 * processes that it has started.
 *
 * @throws ClusterConfigurationError if Node has no compile cache, or it cannot be written.
 * @throws NotMeasuredError if the program does not call `bootstrap()`.
 */
export async function warmApp(
  script: string,
  readyMs: number,
  interruption: Interruption,
): Promise<WarmCache> {
  const directory = openedDirectory(script);
  const { outcome, lastLines } = await runHost(
    { script, readyMs, examination: { examiner: EXAMINER }, compileCache: true },
    {},
    interruption,
  );
  const why = outcome.type === 'failed' ? oneLine(outcome.why) : null;
  if (outcome.type === 'failed' && !outcome.isOurs) {
    throw new NotMeasuredError(
      `the app ${why}; check that the file calls bootstrap() with valid options${lastLines}`,
    );
  }
  const files = await filesIn(directory);
  if (files.length === 0) {
    throw new ClusterConfigurationError(
      `Node has written nothing into ${directory}; see that this user can write there`,
    );
  }
  const bytes = files.reduce((sum, { size }) => sum + size, 0);
  return { directory, files: files.length, bytes, ready: why === null, why };
}

/** Opens the cache in this process too, which checks that a directory is suitable. */
function openedDirectory(script: string): string {
  if (!NODE_HAS_COMPILE_CACHE) {
    throw new ClusterConfigurationError(
      `Node ${process.version} has no compile cache; use Node 22.12 or later, here and where the app runs`,
    );
  }
  const problem = openCompileCache(script);
  const directory = compileCacheDirectory();
  if (directory !== undefined) return directory;
  throw new ClusterConfigurationError(
    problem === undefined
      ? 'the variable NODE_DISABLE_COMPILE_CACHE turns the compile cache off; unset it'
      : `the app ${problem}; let this user write to node_modules/.cache/nestjs-cluster of the app`,
  );
}
