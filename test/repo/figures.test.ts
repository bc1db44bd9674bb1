import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readResults, withFigures } from '../bench/report.mjs';
import { pageBlock, readmeBlock, report } from '../bench/report/pages.mjs';
import { DOCUMENTS, readDocument } from '../support/documents.js';

const results = readResults();
const BLOCKS: Record<string, string> = {
  'README.md': readmeBlock(results),
  'docs/benchmarks.md': pageBlock(results),
};

it.each(DOCUMENTS)('%s has the figures that were measured last: npm run bench:report', (path) => {
  const page = readDocument(path);
  expect(page).toBe(withFigures(page, results, BLOCKS[path]));
});

it('the report has every result: npm run bench:report', () => {
  const path = join(import.meta.dirname, '../bench/results/report.md');
  expect(readFileSync(path, 'utf8')).toBe(report(results));
});
