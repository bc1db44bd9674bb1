import { readFileSync } from 'node:fs';
import { SourceMap, type SourceMapPayload } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { OWN_DIRECTORY } from '../process/own-directory.js';

/** The place of a stack frame: a path or URL, the line and the column. */
const PLACE = /((?:file:\/\/)?\/[^\s():]+\.js):(\d+):(\d+)/g;

/**
 * Replaces places in the bundles of this package by places in their source. Node's own option
 * (`--enable-source-maps`) would do so for all files, and slow down each error of the app.
 *
 * @param text a stack, or a log line with frames.
 */
export function withSourcePlaces(text: string, directory = OWN_DIRECTORY): string {
  if (directory === undefined || !text.includes(directory)) return text;
  return text.replaceAll(PLACE, (place: string, url: string, line: string, column: string) => {
    const file = url.startsWith('file:') ? fileURLToPath(url) : url;
    if (!file.startsWith(directory)) return place;
    return sourcePlace(file, Number(line), Number(column)) ?? place;
  });
}

function sourcePlace(file: string, line: number, column: number): string | undefined {
  try {
    const map = JSON.parse(readFileSync(`${file}.map`, 'utf8')) as SourceMapPayload;
    const found = new SourceMap(map).findOrigin(line, column);
    if (!('fileName' in found)) return undefined;
    return `${join(dirname(file), found.fileName)}:${found.lineNumber}:${found.columnNumber}`;
  } catch {
    return undefined; // the release has been removed
  }
}
