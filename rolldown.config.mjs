// Makes dist/common-js of dist, the package for test runners that cannot load ES modules, above
// all Jest. Nobody else takes it, so an app has one instance: by the conditions of "exports"
// `module-sync` leads every Node that can require() an ES module, and `module` every bundler, to
// the ES modules.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, relative, resolve } from 'node:path';
import { defineConfig } from 'rolldown';

const { exports } = JSON.parse(readFileSync('package.json', 'utf8'));
const entries = Object.values(exports).filter(({ require }) => require !== undefined);

const SWITCH = resolve('dist/contract/options/common-js.js');
/** Imported where the switch is off, and only there. */
const UNREACHED = /[/](?:run-primary|run-worker|v8-flags|thread-pool|thread-warnings)\.js$/;

const nameOf = (entry) => basename(entry.require.default, '.cjs');

const commonJs = defineConfig({
  input: Object.fromEntries(entries.map((entry) => [nameOf(entry), entry.default.default])),
  external: (id) => !/^[./]/.test(id) || UNREACHED.test(id),
  platform: 'node',
  plugins: [
    {
      name: 'nestjs-cluster:common-js',
      load: (id) => (id === SWITCH ? 'export const COMMON_JS = true;' : undefined),
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
});

const uplotStyle = createRequire(import.meta.url).resolve('uplot/dist/uPlot.min.css');

/** The page of the dashboard, with the libraries that it draws with. */
const page = defineConfig({
  input: 'page/main.js',
  platform: 'browser',
  plugins: [
    {
      name: 'nestjs-cluster:page',
      generateBundle() {
        const emit = (fileName, source) => this.emitFile({ type: 'asset', fileName, source });
        emit('index.html', readFileSync('page/index.html'));
        emit('icon.svg', readFileSync('page/icon.svg'));
        emit('dashboard.css', `${readFileSync(uplotStyle)}\n${readFileSync('page/dashboard.css')}`);
      },
    },
  ],
  output: { dir: 'dist/page', minify: true },
});

/**
 * The threads of the primary, each in one file: their source is kept in memory, since the release
 * may be removed before a thread is started.
 */
const threads = defineConfig(
  ['hub/thread/hub-thread', 'observe/admin/admin-thread'].map((entry) => ({
    input: `dist/${entry}.js`,
    platform: 'node',
    output: {
      file: `dist/threads/${basename(entry)}.cjs`,
      format: 'cjs',
      banner: '/*! With parts of valibot and negotiator, which are under the MIT license. */',
      minify: { mangle: { toplevel: true, keepNames: true } },
    },
  })),
);

export default [commonJs, page, ...threads];
