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
import { basename, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';
import { PACKAGES_BESIDE } from './packages-beside.mjs';

const root = join(import.meta.dirname, '../..');
const installed = join(root, 'node_modules');
const fixtures = join(root, 'test/fixtures');

/** The fixtures' own `node_modules`. */
export const QUICK_PACKAGES = join(fixtures, 'node_modules');

/** The packages are built here and then renamed: a second run must not find them half built. */
const building = `${QUICK_PACKAGES}.${process.pid}`;

/**
 * Entries of packages that are ES modules, each with its file. They include the entries that the
 * copies below load. The bundles share chunks, so that no module exists twice.
 */
const ES_MODULES = {
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
const COMMON_JS = {
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
const OWN = [
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
 * Brings the packages of the fixtures up to date with `dist/`. Everything that starts fixtures calls
 * it first: the tests' global setup, and `npm run suites`.
 */
export async function prepareFixtures() {
  if (!existsSync(join(root, 'dist/index.js'))) {
    throw new Error('dist/ is missing: run "npm run build" first (npm test does)');
  }
  // A real copy: through a link it would find the Nest of this repository.
  const nest11 = join(fixtures, 'nest-11');
  for (const own of OWN) {
    rmSync(join(nest11, 'node_modules', own.name), { recursive: true, force: true });
    copyBuiltPackage(own, join(nest11, 'node_modules'));
  }
  for (const program of ['app.mjs', 'declare.mjs', 'decorate.mjs', 'behaviours/socket-io.mjs']) {
    cpSync(join(fixtures, program), join(nest11, basename(program)));
  }
  for (const part of ['dist', 'public', 'package.json']) {
    cpSync(join(root, 'sample-app', part), join(fixtures, 'sample-app', part), { recursive: true });
  }
  await installQuickPackages();
}

/** For Vitest, which calls this name of a global setup. */
export { prepareFixtures as setup };

/**
 * Gives the fixtures Nest, rxjs and prom-client in a few files, and the package under test. The
 * installed packages have more than a thousand files, and a worker would spend more than a third of
 * its start on opening them. The tests start thousands of workers. The app on
 * Nest 11, the command line and `test/packaging` use the installed files, and `dist/` as it is.
 */
async function installQuickPackages() {
  const stamp = stampOf(
    join(root, 'package.json'),
    join(root, 'package-lock.json'),
    import.meta.filename,
    ...OWN.flatMap(({ from }) => filesIn(join(from, 'dist'))),
  );
  const stampFile = join(QUICK_PACKAGES, '.stamp');
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp) return;
  const names = Object.keys(ES_MODULES);
  const isBundled = (id) => names.some((name) => id === name || id.startsWith(`${name}/`));
  await bundle(ES_MODULES, {
    external: (id) =>
      /^(rxjs|prom-client|reflect-metadata)(\/|$)/.test(id) ||
      (id.startsWith('@nestjs/') && !isBundled(id)),
    chunkFileNames: '@nestjs/.chunks/[name].cjs',
    // Else a chunk that uses it runs before the entry that imports it.
    banner: `require('reflect-metadata');`,
  });
  for (const [name, entries] of Object.entries(COMMON_JS)) {
    await bundle({ [name]: entries }, { chunkFileNames: `${name}/[name].cjs` });
  }
  for (const name of COPIES) {
    cpSync(join(installed, name), join(building, name), { recursive: true });
  }
  for (const name of LINKS) symlinkSync(join(installed, name), join(building, name));
  for (const own of OWN) copyBuiltPackage(own, building);
  write('.stamp', stamp);
  rmSync(QUICK_PACKAGES, { recursive: true, force: true });
  try {
    renameSync(building, QUICK_PACKAGES);
  } catch (error) {
    rmSync(building, { recursive: true, force: true });
    // Another run was there first, with the same.
    if (error.code !== 'ENOTEMPTY') throw error;
  }
}

/** Bundles packages, together. */
async function bundle(packages, { external = [], ...output }) {
  const input = Object.fromEntries(
    Object.entries(packages).flatMap(([name, entries]) =>
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
    external,
  });
  await build.write({
    dir: building,
    format: 'cjs',
    entryFileNames: '[name].cjs',
    // Nest tells providers by the names of their classes.
    keepNames: true,
    ...output,
  });
  await build.close();
  for (const [name, entries] of Object.entries(packages)) await describePackage(name, entries);
}

/** The package.json of a bundled package, and its entries for `import`. */
async function describePackage(name, entries) {
  const exports = { './package.json': './package.json' };
  for (const [entry, file] of Object.entries(entries)) {
    exports[subpathOf(entry)] = { import: `./${entry}.mjs`, default: `./${entry}.cjs` };
    // Node would read the whole bundle for the names of its exports.
    const all = await import(pathToFileURL(join(installed, name, file)).href);
    const names = Object.keys(all).filter((key) => key !== 'default' && key !== 'module.exports');
    write(
      `${name}/${entry}.mjs`,
      `import { createRequire } from 'node:module';
const all = createRequire(import.meta.url)('./${basename(entry)}.cjs');
export default all;
export const { ${names.join(', ')} } = all;
`,
    );
  }
  const { version } = packageIn(join(installed, name));
  write(`${name}/package.json`, JSON.stringify({ name, version, exports }));
}

/** Copies a built package as real files: through a link, its files would import the repository's Nest. */
function copyBuiltPackage({ name, from }, into) {
  for (const part of ['dist', 'package.json']) {
    cpSync(join(from, part), join(into, name, part), { recursive: true });
  }
}

function subpathOf(entry) {
  return entry === 'index' ? '.' : `./${entry}`;
}

function write(path, text) {
  const absolute = join(building, path);
  mkdirSync(dirname(absolute), { recursive: true });
  writeFileSync(absolute, text);
}

function packageIn(directory) {
  return JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8'));
}

function filesIn(directory) {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

function stampOf(...paths) {
  const hash = createHash('sha256');
  for (const path of paths) hash.update(path.slice(root.length)).update(readFileSync(path));
  return hash.digest('hex');
}
