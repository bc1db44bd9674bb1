import { realpathSync } from 'node:fs';
import module from 'node:module';
import { dirname, join } from 'node:path';
import { messageOf } from '../errors/errors.js';
import { claimDirectory, ownDirectory } from '../files/control-address.js';

/** Missing on Node 20: https://nodejs.org/api/module.html#module-compile-cache */
interface CompileCacheApi {
  enableCompileCache?(directory: string): { status: number; message?: string };
  flushCompileCache?(): void;
  getCompileCacheDir?(): string | undefined;
}

/** `module.constants.compileCacheStatus.FAILED`. */
const FAILED = 0;

/**
 * Enables Node's compile cache for this process or thread. Does nothing if Node has no cache, or if
 * the user controls the cache with NODE_COMPILE_CACHE, NODE_DISABLE_COMPILE_CACHE or a call in the
 * app.
 *
 * @param directory for a worker, the primary's directory; for a thread, its worker's directory.
 *   Each checks it again, because a cleaner of temporary files may have removed it.
 * @returns the problem, as a log line: the directory cannot be written, or another user could
 *   change its files, which this process would run.
 */
export function openCompileCache(
  directory?: string,
  node: CompileCacheApi = module,
): string | undefined {
  if (node.enableCompileCache === undefined || node.getCompileCacheDir?.()) return undefined;
  if (process.env['NODE_DISABLE_COMPILE_CACHE']) return undefined;
  try {
    const cache = directory ?? defaultDirectory();
    claimDirectory(cache);
    const { status, message } = node.enableCompileCache(cache);
    return status === FAILED ? `starts without a compile cache: ${cache}: ${message}` : undefined;
  } catch (error) {
    return `starts without a compile cache: ${messageOf(error)}`;
  }
}

function defaultDirectory(): string {
  const own = ownDirectory();
  claimDirectory(own);
  return join(realpathSync(own), 'compile-cache');
}

/** The directory that this process uses; `undefined` without a cache. Threads do not inherit it. */
export function compileCacheDirectory(): string | undefined {
  const inUse = (module as CompileCacheApi).getCompileCacheDir?.();
  return inUse && dirname(inUse);
}

/** Writes the compiled code of this process to disk, so that a kill does not lose it. */
export function keepCompiled(): void {
  (module as CompileCacheApi).flushCompileCache?.();
}
