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
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { rolldown } from 'rolldown';

const root = join(import.meta.dirname, '../..');
const installed = join(root, 'node_modules');

/** The fixtures' own `node_modules`. */
export const QUICK_PACKAGES = join(root, 'test/fixtures/node_modules');

/** Where they are made: two runs may begin at once, and neither is to find half of them. */
const building = `${QUICK_PACKAGES}.${process.pid}`;

/** ES modules: their entries, each with its file, also those that the copies below load. The bundles share chunks: no module is there twice. */
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
  '@nestjs/microservices',
  '@nestjs/platform-ws',
  '@nestjs/schedule',
  '@nestjs/throttler',
  '@nestjs/websockets',
];

/** Small ones, for apps outside the repository that are linked to this folder. */
const LINKS = [
  'reflect-metadata',
  'tslib',
  'typescript',
  ...Object.keys(packageIn(root).dependencies ?? {}),
];

/**
 * Gives the fixtures Nest, rxjs and prom-client in a few files. Installed, they are more than a
 * thousand files, and a worker spends a third of its start on opening them. The tests start
 * thousands of workers. The package under test stays in its own files; the sample app, Nest 11
 * itself and `test/packaging` use what is installed.
 */
export async function installQuickPackages(): Promise<void> {
  const stamp = stampOf(
    join(root, 'package.json'),
    join(root, 'package-lock.json'),
    import.meta.filename,
    ...filesIn(join(root, 'dist')),
  );
  const stampFile = join(QUICK_PACKAGES, '.stamp');
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp) return;
  await bundleEsModules();
  for (const [name, entries] of Object.entries(COMMON_JS)) await bundleCommonJs(name, entries);
  for (const name of COPIES) {
    cpSync(join(installed, name), join(building, name), { recursive: true });
  }
  for (const name of LINKS) symlinkSync(join(installed, name), join(building, name));
  copyBuiltPackage();
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
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: '@nestjs/.chunks/[name].js',
    // Else a chunk that uses it runs before the entry that imports it.
    banner: `import 'reflect-metadata';`,
    // Nest tells providers by the names of their classes.
    keepNames: true,
  });
  await build.close();
  for (const [name, entries] of Object.entries(ES_MODULES)) {
    const exports: Record<string, string> = { './package.json': './package.json' };
    for (const [entry, file] of Object.entries(entries)) {
      exports[subpathOf(entry)] = `./${entry}.js`;
      declare(name, entry, file);
    }
    const { version } = packageIn(join(installed, name));
    write(`${name}/package.json`, JSON.stringify({ name, version, type: 'module', exports }));
  }
}

async function bundleCommonJs(name: string, entries: Record<string, string>): Promise<void> {
  const require = createRequire(import.meta.url);
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
  const exports: Record<string, unknown> = { './package.json': './package.json' };
  for (const [entry, file] of Object.entries(entries)) {
    exports[subpathOf(entry)] = { import: `./${entry}.mjs`, default: `./${entry}.cjs` };
    // Node would read the whole bundle for the names of its exports.
    const names = Object.keys(require(join(installed, name, file)) as object);
    write(
      `${name}/${entry}.mjs`,
      `import { createRequire } from 'node:module';
const all = createRequire(import.meta.url)('./${entry}.cjs');
export default all;
export const { ${names.join(', ')} } = all;
`,
    );
    declare(name, entry, file.replace('/cjs/', '/types/'), ['.d.mts', '.d.cts']);
  }
  const { version } = packageIn(join(installed, name));
  write(`${name}/package.json`, JSON.stringify({ name, version, exports }));
}

/** Real files: through a link they would find the Nest of the repository. */
function copyBuiltPackage(): void {
  const copy = join(building, 'nestjs-cluster');
  cpSync(join(root, 'dist'), join(copy, 'dist'), {
    recursive: true,
    filter: (path) => !path.endsWith('.d.ts'),
  });
  cpSync(join(root, 'package.json'), join(copy, 'package.json'));
  for (const entry of ['dist/index', 'dist/bootstrap/index']) {
    declareAs(`nestjs-cluster/${entry}.d.ts`, join(root, `${entry}.js`));
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

function packageIn(directory: string): { version: string; dependencies?: object } {
  return JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8')) as {
    version: string;
    dependencies?: object;
  };
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
