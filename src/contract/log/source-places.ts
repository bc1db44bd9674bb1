import { readFileSync } from 'node:fs';
import { SourceMap, type SourceMapPayload } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { OWN_DIRECTORY } from '../process/own-directory.js';

/** The place of a stack frame: a path or URL, the line and the column. */
const PLACE = /((?:file:\/\/)?\/[^\s():]+\.[cm]?js):(\d+):(\d+)/g;

/**
 * Replaces places in the bundles of this package by places in their source. Node's own option
 * (`--enable-source-maps`) would do so for all files, and slow down each error of the app.
 *
 * @param text a stack, or a log line with frames.
 */
export function withSourcePlaces(text: string, directory = OWN_DIRECTORY): string {
  if (directory === undefined || !text.includes(directory)) return text;
  const maps = new Map<string, SourceMap | undefined>(); // a stack has many frames of one file
  return text.replaceAll(PLACE, (place: string, url: string, line: string, column: string) => {
    const file = url.startsWith('file:') ? fileURLToPath(url) : url;
    if (!file.startsWith(directory)) return place;
    if (!maps.has(file)) maps.set(file, sourceMapOf(file));
    const found = maps.get(file)?.findOrigin(Number(line), Number(column));
    if (found === undefined || !('fileName' in found)) return place;
    return `${join(dirname(file), found.fileName)}:${found.lineNumber}:${found.columnNumber}`;
  });
}

/** `undefined` for a file without a map, and after its release was removed. */
function sourceMapOf(file: string): SourceMap | undefined {
  try {
    return new SourceMap(JSON.parse(readFileSync(`${file}.map`, 'utf8')) as SourceMapPayload);
  } catch {
    return undefined;
  }
}
