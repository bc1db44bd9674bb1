import { readFile } from 'node:fs/promises';
import { besideThis } from '../../contract/process/own-file.js';

/** The files by URL path. A requested path is only looked up here, never used as a file name. */
const FILES: ReadonlyMap<string, { readonly name: string; readonly type: string }> = new Map([
  ['/', { name: 'index.html', type: 'text/html; charset=utf-8' }],
  ['/main.js', { name: 'main.js', type: 'text/javascript; charset=utf-8' }],
  ['/dashboard.css', { name: 'dashboard.css', type: 'text/css; charset=utf-8' }],
  ['/icon.svg', { name: 'icon.svg', type: 'image/svg+xml' }],
]);

export const PAGE_PATHS: readonly string[] = [...FILES.keys()];

/** A file of the page, or `undefined` if there is none. */
export async function pageFile(
  path: string,
): Promise<{ readonly type: string; readonly body: Buffer } | undefined> {
  const file = FILES.get(path);
  if (file === undefined) return undefined;
  return { type: file.type, body: await readFile(besideThis(`dist/page/${file.name}`)!) };
}
