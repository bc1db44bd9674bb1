import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';
import { CODE_CACHE_FILES, prepareCodeCache } from './code-cache.js';
import { PACKAGES_BESIDE } from './packages-beside.js';

const root = join(import.meta.dirname, '../..');
const installed = join(root, 'node_modules');

/** The fixtures' own `node_modules`. */
export const QUICK_PACKAGES = join(root, 'test/fixtures/node_modules');

/** The packages are built here and then renamed: a second run must not find them half built. */
const building = `${QUICK_PACKAGES}.${process.pid}`;

/**
 * Entries of packages that are ES modules, each with its file. They include the entries that the
 * copies below load. The bundles share chunks, so that no module exists twice.
 */
const ES_MODULES: Record<string, Record<string, string>> = {
  '@nestjs/common': {
    index: 'index.js',
    internal: 'internal.js',
    'constants.js': 'constants.js',
  },
  '@nestjs/core': {
    index: 'index.js',
    internal: 'internal.js',
    'injector/injector.js': 'injector/injector.js',
    'router/request/request-constants.js': 'router/request/request-constants.js',
  },
  '@nestjs/platform-express': { index: 'index.js' },
  '@nestjs/platform-fastify': { index: 'index.js' },
  '@nestjs/terminus': { index: 'dist/index.js' },
  // Each app loads these two, where they are installed.
  '@nestjs/microservices': {
    index: 'index.js',
    'microservices-module.js': 'microservices-module.js',
  },
  '@nestjs/websockets': {
    index: 'index.js',
    internal: 'internal.js',
    'socket-module.js': 'socket-module.js',
  },
};

/** CommonJS that depends on none of the above. */
const COMMON_JS: Record<string, Record<string, string>> = {
  rxjs: { index: 'dist/cjs/index.js', operators: 'dist/cjs/operators/index.js' },
  'prom-client': { index: 'index.js' },
};

/** Few tests need them. They are real files, so that they find the packages above. */
const COPIES = [
  '@nestjs/bull-shared',
  '@nestjs/bullmq',
  '@nestjs/cache-manager',
  '@nestjs/platform-ws',
  '@nestjs/schedule',
  '@nestjs/throttler',
];

/** The packages under test: this package, and the packages in `packages/`. */
export const OWN = [
  { name: 'nestjs-cluster', from: root },
  ...PACKAGES_BESIDE.map((directory) => ({
    name: `@nestjs-cluster/${directory}`,
    from: join(root, 'packages', directory),
  })),
];

/** Small ones, for apps outside the repository that are linked to this folder. */
const LINKS = [
  'reflect-metadata',
  'tslib',
  'typescript',
  ...Object.keys(packageIn(root).dependencies ?? {}),
];

/**
 * Gives the fixtures Nest, rxjs and prom-client in a few files, and the package under test. The
 * installed packages have more than a thousand files, and a worker would spend more than a third of
 * its start on opening them. The tests start thousands of workers. The app on
 * Nest 11, the command line and `test/packaging` use the installed files, and `dist/` as it is.
 */
export async function installQuickPackages(): Promise<void> {
  const stamp = stampOf(
    join(root, 'package.json'),
    join(root, 'package-lock.json'),
    import.meta.filename,
    ...CODE_CACHE_FILES,
    ...OWN.flatMap(({ from }) => filesIn(join(from, 'dist'))),
  );
  const stampFile = join(QUICK_PACKAGES, '.stamp');
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp) return;
  await bundleEsModules();
  for (const [name, entries] of Object.entries(COMMON_JS)) await bundleCommonJs(name, entries);
  prepareCodeCache(building);
  for (const name of COPIES) {
    cpSync(join(installed, name), join(building, name), { recursive: true });
  }
  for (const name of LINKS) symlinkSync(join(installed, name), join(building, name));
  OWN.forEach(copyBuiltPackage);
  write('.stamp', stamp);
  rmSync(QUICK_PACKAGES, { recursive: true, force: true });
  try {
    renameSync(building, QUICK_PACKAGES);
  } catch (error) {
    rmSync(building, { recursive: true, force: true });
    // Another run was there first, with the same.
    if ((error as NodeJS.ErrnoException).code !== 'ENOTEMPTY') throw error;
  }
}

/** As CommonJS: V8 compiles that from a cache on every Node, ES modules on none. */
async function bundleEsModules(): Promise<void> {
  const names = Object.keys(ES_MODULES);
  const isBundled = (id: string): boolean =>
    names.some((name) => id === name || id.startsWith(`${name}/`));
  const input = Object.fromEntries(
    Object.entries(ES_MODULES).flatMap(([name, entries]) =>
      Object.entries(entries).map(([entry, file]) => [
        `${name}/${entry}`,
        join(installed, name, file),
      ]),
    ),
  );
  const build = await rolldown({
    input,
    cwd: root,
    platform: 'node',
    treeshake: false,
    logLevel: 'silent',
    external: (id) =>
      /^(rxjs|prom-client|reflect-metadata)(\/|$)/.test(id) ||
      (id.startsWith('@nestjs/') && !isBundled(id)),
  });
  await build.write({
    dir: building,
    format: 'cjs',
    entryFileNames: '[name].cjs',
    chunkFileNames: '@nestjs/.chunks/[name].cjs',
    // Else a chunk that uses it runs before the entry that imports it.
    banner: `require('reflect-metadata');`,
    // Nest tells providers by the names of their classes.
    keepNames: true,
  });
  await build.close();
  for (const [name, entries] of Object.entries(ES_MODULES)) await describePackage(name, entries);
}

async function bundleCommonJs(name: string, entries: Record<string, string>): Promise<void> {
  const input = Object.fromEntries(
    Object.entries(entries).map(([entry, file]) => [entry, join(installed, name, file)]),
  );
  const build = await rolldown({ input, platform: 'node', treeshake: false, logLevel: 'silent' });
  await build.write({
    dir: join(building, name),
    format: 'cjs',
    entryFileNames: '[name].cjs',
    chunkFileNames: '[name].cjs',
    keepNames: true,
  });
  await build.close();
  await describePackage(name, entries);
}

/** The package.json of a bundled package, its entries for `import`, its types. */
async function describePackage(name: string, entries: Record<string, string>): Promise<void> {
  const exports: Record<string, unknown> = { './package.json': './package.json' };
  for (const [entry, file] of Object.entries(entries)) {
    exports[subpathOf(entry)] = { import: `./${entry}.mjs`, default: `./${entry}.cjs` };
    // Node would read the whole bundle for the names of its exports.
    const all = (await import(pathToFileURL(join(installed, name, file)).href)) as object;
    const names = Object.keys(all).filter((key) => key !== 'default' && key !== 'module.exports');
    write(
      `${name}/${entry}.mjs`,
      `import { createRequire } from 'node:module';
const all = createRequire(import.meta.url)('./${basename(entry)}.cjs');
export default all;
export const { ${names.join(', ')} } = all;
`,
    );
    declare(name, entry, file.replace('/cjs/', '/types/'), ['.d.mts', '.d.cts']);
  }
  const { version } = packageIn(join(installed, name));
  write(`${name}/package.json`, JSON.stringify({ name, version, exports }));
}

/** Copies a built package as real files: through a link, its files would import the repository's Nest. */
function copyBuiltPackage({ name, from }: { name: string; from: string }): void {
  const copy = join(building, name);
  cpSync(join(from, 'dist'), join(copy, 'dist'), {
    recursive: true,
    filter: (path) => !path.endsWith('.d.ts'),
  });
  cpSync(join(from, 'package.json'), join(copy, 'package.json'));
  for (const path of filesIn(join(from, 'dist')).filter((file) => file.endsWith('.d.ts'))) {
    const file = relative(from, path);
    declareAs(`${name}/${file}`, path.replace(/\.d\.ts$/, '.js'));
  }
}

/** The compiler and the linter see the types that are installed. */
function declare(name: string, entry: string, file: string, extensions = ['.d.ts']): void {
  for (const extension of extensions) {
    declareAs(`${name}/${entry}${extension}`, join(installed, name, file));
  }
}

function declareAs(path: string, file: string): void {
  const specifier = relative(dirname(join(building, path)), file);
  write(path, `export * from '${specifier}';\n`);
}

function subpathOf(entry: string): string {
  return entry === 'index' ? '.' : `./${entry}`;
}

function write(path: string, text: string): void {
  const absolute = join(building, path);
  mkdirSync(dirname(absolute), { recursive: true });
  writeFileSync(absolute, text);
}

interface Manifest {
  readonly version: string;
  readonly dependencies?: object;
}

function packageIn(directory: string): Manifest {
  return JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8')) as Manifest;
}

function filesIn(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

function stampOf(...paths: readonly string[]): string {
  const hash = createHash('sha256');
  for (const path of paths) hash.update(path.slice(root.length)).update(readFileSync(path));
  return hash.digest('hex');
}
