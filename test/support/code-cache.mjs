import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join, relative } from 'node:path';

/** Its files are run from V8's cache; see there. */
const LOADER = '.code-cache.cjs';

export const CODE_CACHE_FILES = [
  import.meta.filename,
  join(import.meta.dirname, 'run-from-code-cache.cjs'),
  join(import.meta.dirname, 'make-code-cache.mjs'),
];

/** Smaller ones are compiled as fast as a cache is read. */
const MIN_BYTES = 10_000;

/**
 * Has the CommonJS bundles in `directory` compiled from a cache of V8's. Compiling them was more than
 * half of what a worker's imports cost. Node's own cache, `NODE_COMPILE_CACHE`, is not in Node 20.
 */
export function prepareCodeCache(directory) {
  copyFileSync(join(import.meta.dirname, 'run-from-code-cache.cjs'), join(directory, LOADER));
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath, entry.name);
    if (
      !entry.isFile() ||
      !file.endsWith('.cjs') ||
      entry.name === LOADER ||
      statSync(file).size < MIN_BYTES
    )
      continue;
    // Its import() would be refused, or warned of: the loader has its own.
    const body = readFileSync(file, 'utf8').replace(/\bimport\(/g, 'importFromCache(');
    writeFileSync(file.replace(/cjs$/, 'body.js'), body);
    const path = relative(entry.parentPath, join(directory, LOADER));
    writeFileSync(file, `require('./${path}')(module, require);\n`);
  }
}

/** Makes the cache for each of these Nodes that has none in `directory` yet. */
export function makeCodeCaches(directory, nodes) {
  for (const node of new Set(nodes)) {
    const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim();
    const made = join(directory, `.code-cache-${version}`);
    if (existsSync(made)) continue;
    execFileSync(node, [join(import.meta.dirname, 'make-code-cache.mjs'), join(directory, LOADER)]);
    writeFileSync(made, '');
  }
}
