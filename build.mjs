// Bundles the src of the package and of each package in packages/ into its dist. The compiler adds
// the declarations.
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, relative, resolve } from 'node:path';
import { rolldown } from 'rolldown';

/** The files that run as a process or a thread, by their names in dist/programs; see own-file.ts. */
const PROGRAMS = {
  'nestjs-cluster': {
    'offload-thread': 'src/offload/thread/thread-entry.ts',
  },
  '@nestjs-cluster/tools': { 'doctor-preload': 'src/doctor/preload.ts' },
};

/**
 * Programs in CommonJS, each in one file: preloads, and threads whose source is kept in memory, since
 * the release may be removed before a thread is started. `dist/thread.cjs` of a package is the
 * thread that the primary runs for it.
 */
const SINGLE_FILES = {
  'nestjs-cluster': {
    'programs/early-boot': 'src/worker/boot/early-boot.ts',
    'programs/watchdog-thread': 'src/worker/watchdog/watchdog-thread.ts',
  },
  '@nestjs-cluster/shared': { thread: 'src/thread/thread.ts' },
};

/** Finds the other files by where it lies itself, so it lies in dist as in src. */
const OWN_DIRECTORY = 'contract/process/own-directory';

/** Imported where the switch in common-js.ts is off, and only there. */
const UNREACHED = /[/](?:run-primary|run-worker|thread-pool)\.js$/;

const isPackage = (id) => !/^[./]|^@oxc-project[/]runtime/.test(id);
const inDist = (file) => relative('dist', file).replace(/\.js$/, '');
const sourceOf = (file) => `src/${inDist(file)}.ts`;
const nameOf = (entry) => basename(entry.require.default, '.cjs');

/** The bundles of the package in the working directory. */
function bundles() {
  const { name, bin = {}, exports } = JSON.parse(readFileSync('package.json', 'utf8'));
  const entries = Object.values(exports).filter(({ require }) => require !== undefined);
  const source = { platform: 'node', tsconfig: 'src/tsconfig.json' };
  const commonJsSwitch = resolve('src/contract/options/common-js.ts');

  /** The package as its apps import it: one file for each entry, and chunks of what they share. */
  const esModules = {
    ...source,
    input: Object.fromEntries([
      ...entries.map((entry) => [inDist(entry.default.default), sourceOf(entry.default.default)]),
      ...Object.values(bin).map((file) => [inDist(file), sourceOf(file)]),
      ...Object.entries(PROGRAMS[name] ?? {}).map(([to, file]) => [`programs/${to}`, file]),
    ]),
    external: isPackage,
    output: {
      dir: 'dist',
      entryFileNames: '[name].js',
      chunkFileNames: ({ name }) =>
        `${name === OWN_DIRECTORY ? OWN_DIRECTORY : `chunks/${name}`}.js`,
      codeSplitting: {
        groups: [
          { name: OWN_DIRECTORY, test: `src/${OWN_DIRECTORY}.ts` },
          // Most entries use these: one file instead of 30 small ones.
          { name: 'contract', test: /[/]src[/]contract[/]/, minShareCount: 6 },
        ],
      },
      comments: false,
      // Stacks, profiles and Nest's messages show them.
      keepNames: true,
    },
  };

  const singleFiles = Object.entries(SINGLE_FILES[name] ?? {}).map(([to, input]) => ({
    ...source,
    input,
    output: {
      file: `dist/${to}.cjs`,
      format: 'cjs',
      minify: { mangle: { toplevel: true, keepNames: true } },
    },
  }));

  /**
   * The package for test runners that cannot load ES modules, above all Jest. Nobody else takes it,
   * so an app has one instance: by the conditions of "exports" `module-sync` leads every Node that
   * can require() an ES module, and `module` every bundler, to the ES modules.
   */
  const commonJs = {
    ...source,
    input: Object.fromEntries(
      entries.map((entry) => [nameOf(entry), sourceOf(entry.default.default)]),
    ),
    external: (id) => isPackage(id) || UNREACHED.test(id),
    plugins: [
      {
        name: 'nestjs-cluster:common-js',
        load: (id) => (id === commonJsSwitch ? 'export const COMMON_JS = true;' : undefined),
        generateBundle() {
          for (const entry of entries) {
            const source = `export * from '${relative('dist/common-js', entry.default.default)}';\n`;
            this.emitFile({ type: 'asset', fileName: `${nameOf(entry)}.d.cts`, source });
          }
        },
      },
    ],
    output: {
      dir: 'dist/common-js',
      format: 'cjs',
      entryFileNames: '[name].cjs',
      chunkFileNames: '[name].cjs',
      // Without a flag, Jest has require() alone.
      dynamicImportInCjs: false,
      // Tests alone load it: small rather than pretty. Messages and stacks keep their names.
      minify: { mangle: { toplevel: true, keepNames: true } },
    },
  };

  const all = [...singleFiles, ...(existsSync('page') ? [page()] : [])];
  if (Object.keys(esModules.input).length > 0) all.push(esModules);
  if (entries.length > 0) all.push(commonJs);
  return all;
}

/** The page of the dashboard, with the libraries that it draws with. */
function page() {
  const uplotStyle = createRequire(import.meta.url).resolve('uplot/dist/uPlot.min.css');
  return {
    input: 'page/main.js',
    platform: 'browser',
    plugins: [
      {
        name: 'nestjs-cluster:page',
        generateBundle() {
          const emit = (fileName, source) => this.emitFile({ type: 'asset', fileName, source });
          emit('index.html', readFileSync('page/index.html'));
          emit('icon.svg', readFileSync('page/icon.svg'));
          emit('preact.LICENSE', readFileSync('page/preact.LICENSE'));
          emit(
            'dashboard.css',
            `${readFileSync(uplotStyle)}\n${readFileSync('page/dashboard.css')}`,
          );
        },
      },
    ],
    output: { dir: 'dist/page', minify: true },
  };
}

/** The packages in `packages/`, which may be missing. */
const beside = existsSync('packages')
  ? readdirSync('packages').map((name) => `packages/${name}`)
  : [];

/** Notes the folder of each package that a bundle contains. */
const bundled = (folders) => ({
  name: 'nestjs-cluster:bundled',
  generateBundle(_options, bundle) {
    for (const { moduleIds = [] } of Object.values(bundle))
      for (const id of moduleIds) {
        const [, folder] = /^(.*[/]node_modules[/](?:@[^/]+[/])?[^/]+)[/]/.exec(id) ?? [];
        if (folder !== undefined) folders.add(folder);
      }
  },
});

/** Writes dist/licenses.txt: these licenses demand that their text goes with every copy. */
function writeLicenses(folders) {
  const texts = [...folders]
    .toSorted((a, b) => (a < b ? -1 : 1))
    .map((folder) => {
      const { name, version } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
      const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
      return `${name} ${version}\n\n${readFileSync(`${folder}/${file}`, 'utf8').trim()}\n`;
    });
  if (texts.length > 0) writeFileSync('dist/licenses.txt', texts.join(`\n${'-'.repeat(72)}\n\n`));
}

for (const directory of ['.', ...beside].map((each) => resolve(each))) {
  process.chdir(directory);
  const folders = new Set();
  for (const { output, plugins = [], ...input } of bundles()) {
    const bundle = await rolldown({
      ...input,
      plugins: [...plugins, bundled(folders)],
      logLevel: 'silent',
    });
    await bundle.write(output);
    await bundle.close();
  }
  writeLicenses(folders);
  // npm sets the mode when it installs a package, but a workspace is installed before it is built.
  const { bin = {} } = JSON.parse(readFileSync('package.json', 'utf8'));
  for (const program of Object.values(bin)) chmodSync(program, 0o755);
}
