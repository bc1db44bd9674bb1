import { existsSync, lstatSync, mkdirSync } from 'node:fs';
import { readdir, rm, stat } from 'node:fs/promises';
import module from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { messageOf } from '../errors/index.js';
import { ownUid, refuseSwappable } from '../files/control-address.js';

/** Functions of Node 22.8 and later: https://nodejs.org/api/module.html#module-compile-cache */
export interface CompileCacheApi {
  readonly enableCompileCache?: (directory: string) => {
    readonly status: number;
    readonly message?: string;
  };
  readonly flushCompileCache?: () => void;
  readonly getCompileCacheDir?: () => string | undefined;
}

export const NODE_HAS_COMPILE_CACHE = (module as CompileCacheApi).enableCompileCache !== undefined;

/** `module.constants.compileCacheStatus.FAILED`. */
const FAILED = 0;

/** Bits of a file mode. */
const WRITABLE_BY_OTHERS = 0o022;

/** Maximum size of the cache, in bytes, which has room for several releases and Nodes. */
const MAX_BYTES = 256 * 1024 * 1024;

/**
 * Turns Node's compile cache on for this process, in the first suitable directory: the app's
 * `node_modules/.cache`, which an image may contain, or one in the temporary directory.
 *
 * Does nothing on a Node without the cache, or if the environment has decided
 * (`NODE_COMPILE_CACHE`, `NODE_DISABLE_COMPILE_CACHE`).
 *
 * @returns the problem, as a line for the log, if no directory is suitable.
 */
export function openCompileCache(
  script = process.cwd(),
  env: NodeJS.ProcessEnv = process.env,
  node: CompileCacheApi = module,
): string | undefined {
  if (env['NODE_COMPILE_CACHE'] || env['NODE_DISABLE_COMPILE_CACHE']) return undefined;
  if (node.enableCompileCache === undefined) return undefined;
  let problem: string | undefined;
  for (const directory of cacheDirectories(script)) {
    try {
      claimCacheDirectory(directory);
      enableCompileCache(directory, node);
      return undefined;
    } catch (error) {
      problem = `starts without a compile cache: ${messageOf(error)}`;
    }
  }
  return problem;
}

/** @throws Error if Node cannot use the directory. */
export function enableCompileCache(directory: string, node: CompileCacheApi = module): void {
  const { status, message } = node.enableCompileCache?.(directory) ?? { status: 1 };
  if (status === FAILED) throw new Error(`${directory}: ${message}`);
}

/** The directory that this process uses; `undefined` without a cache. Threads do not inherit it. */
export function compileCacheDirectory(node: CompileCacheApi = module): string | undefined {
  const inUse = node.getCompileCacheDir?.();
  return inUse && dirname(inUse);
}

/**
 * Writes what this process has compiled, so that a kill does not lose it. If the cache is too large
 * then, removes the oldest files.
 */
export async function keepCompiled(
  node: CompileCacheApi = module,
  maxBytes = MAX_BYTES,
): Promise<void> {
  const directory = compileCacheDirectory(node);
  if (directory === undefined) return;
  node.flushCompileCache?.();
  if (process.env['NODE_COMPILE_CACHE']) return; // the user's directory
  const files = await filesIn(directory);
  let bytes = files.reduce((sum, { size }) => sum + size, 0);
  if (bytes <= maxBytes) return;
  for (const { path, size } of files.toSorted((one, other) => one.mtimeMs - other.mtimeMs)) {
    await rm(path, { force: true });
    bytes -= size;
    if (bytes <= maxBytes / 2) return;
  }
}

function cacheDirectories(script: string): string[] {
  const modules = nodeModulesOf(dirname(script));
  return [
    ...(modules === undefined ? [] : [join(modules, '.cache/nestjs-cluster')]),
    temporaryCacheDirectory(),
  ];
}

/** The directory for an app whose own cannot be written. */
export function temporaryCacheDirectory(): string {
  return join(tmpdir(), `nestjs-cluster-${ownUid()}`, 'compile-cache');
}

function nodeModulesOf(directory: string): string | undefined {
  const modules = join(directory, 'node_modules');
  if (existsSync(modules)) return modules;
  const parent = dirname(directory);
  return parent === directory ? undefined : nodeModulesOf(parent);
}

/** @throws Error if another user could change what is in the directory, which this process would run. */
function claimCacheDirectory(directory: string): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  if (process.platform === 'win32') return; // there, files have no numeric owner
  const { uid, mode } = lstatSync(directory);
  if (uid !== ownUid()) throw new Error(`${directory} belongs to another user (uid ${uid})`);
  if ((mode & WRITABLE_BY_OTHERS) !== 0) {
    throw new Error(`${directory} is writable by other users; chmod 700 it`);
  }
  refuseSwappable(dirname(directory));
}

interface CacheFile {
  readonly path: string;
  readonly size: number;
  readonly mtimeMs: number;
}

/** The files of a cache, for all versions of Node and all users. */
export async function filesIn(directory: string): Promise<CacheFile[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files: CacheFile[] = [];
  for (const entry of entries) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    // Another process may have removed it.
    const stats = await stat(path).catch(() => undefined);
    if (stats !== undefined) files.push({ path, size: stats.size, mtimeMs: stats.mtimeMs });
  }
  return files;
}
