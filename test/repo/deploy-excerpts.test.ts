import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DOCUMENTS, readDocument } from '../support/documents.js';

const root = join(import.meta.dirname, '../..');

/** Code blocks of all pages whose first line names a file of deploy/: page, file, and the rest. */
const EXCERPTS = DOCUMENTS.flatMap((page) =>
  [...readDocument(page).matchAll(/^```\w*\n(?:#|\/\/) (deploy\/\S+)\n(.*?)^```$/gms)].map(
    ([, file, text]) => [page, file!, text!] as const,
  ),
);

/** Parts of an excerpt between lines that say something is left out. */
const partsOf = (text: string) => text.split(/^ *# …\n/m).filter((part) => part !== '');

describe('excerpts of deploy/ in the documentation', () => {
  it.each(EXCERPTS)('%s shows what %s has', (_, file, text) => {
    const lines = readFileSync(join(root, file), 'utf8').split('\n');
    let from = 0;
    for (const part of partsOf(text)) {
      const shown = part.trimEnd().split('\n');
      const index = lines.findIndex((__, i) => i >= from && standsAt(lines, i, shown));
      expect(index, `not in ${file}, or not in its place:\n${part}`).toBeGreaterThanOrEqual(0);
      from = index + shown.length;
    }
  });
});

/** Whether lines are the same but for a common indent, which a page leaves out. */
function standsAt(lines: readonly string[], start: number, shown: readonly string[]): boolean {
  const [first = ''] = shown;
  if (!lines[start]!.endsWith(first)) return false;
  const indent = lines[start]!.slice(0, lines[start]!.length - first.length);
  return (
    indent.trim() === '' &&
    shown.every((line, i) => lines[start + i] === (line === '' ? '' : indent + line))
  );
}
