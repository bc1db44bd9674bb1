import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const require = createRequire(import.meta.url);

/** The same from src/ and from dist/. */
const own = (name: string) => fileURLToPath(new URL(`../../../page/${name}`, import.meta.url));

const SCRIPT = 'text/javascript; charset=utf-8';
const STYLE = 'text/css; charset=utf-8';

const ownScript = (name: string) => [`/${name}`, { type: SCRIPT, path: () => own(name) }] as const;

/** Every file there is, by its path: nothing that is asked for becomes a path here. */
const FILES: ReadonlyMap<string, { readonly type: string; readonly path: () => string }> = new Map([
  ['/', { type: 'text/html; charset=utf-8', path: () => own('index.html') }],
  ['/dashboard.css', { type: STYLE, path: () => own('dashboard.css') }],
  ['/icon.svg', { type: 'image/svg+xml', path: () => own('icon.svg') }],
  ...['main.js', 'view.js', 'workers.js', 'chart.js', 'dialogs.js', 'session.js', 'format.js'].map(
    ownScript,
  ),
  ['/vendor/htm-preact.js', { type: SCRIPT, path: htmWithPreact }],
  ['/vendor/uplot.js', { type: SCRIPT, path: () => require.resolve('uplot/dist/uPlot.esm.js') }],
  ['/vendor/uplot.css', { type: STYLE, path: () => require.resolve('uplot/dist/uPlot.min.css') }],
]);

/** Its package exports it under a name that CommonJS does not find. */
function htmWithPreact(): string {
  return join(dirname(require.resolve('htm/preact')), 'standalone.module.js');
}

export const PAGE_PATHS: readonly string[] = [...FILES.keys()];

/** A file of the page, or `undefined` where there is none. */
export async function pageFile(
  path: string,
): Promise<{ readonly type: string; readonly body: Buffer } | undefined> {
  const file = FILES.get(path);
  return file && { type: file.type, body: await readFile(file.path()) };
}
