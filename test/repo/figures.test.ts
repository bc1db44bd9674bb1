import { dirname, join, normalize } from 'node:path';
import { expect, it } from 'vitest';
import { inMarkdown } from '../bench/report/cell-text.mjs';
import { fillFigures } from '../bench/report/figures.mjs';
import { pageParts, readmeParts } from '../bench/report/page-parts.mjs';
import { readResults } from '../bench/report/read-results.mjs';
import { anchorsOf, DOCUMENTS, readDocument, rowsOf } from '../support/documents.js';

const results = readResults(join(import.meta.dirname, '../bench/results'));
const RUN_AGAIN = 'the pages are older than the results: npm run bench:report';

/** "2.5 ms", "40 to 70 µs" */
const FIGURES =
  /(?<![\d.,])\d[\d.,]*(?: to \d[\d.,]*)? (?:µs|ms|s|MB|MiB|%|times|\w+ a second)(?![\w/])/g;
const COST =
  /µs|\b(?:takes?|took|costs?|saves?|needs?|needed|adds?|median|p99|slower|faster|lower|more|less)\b/;
/** A sentence with one of these words gives a limit, a default or a choice, not a measurement. */
const LIMIT =
  /\b(?:at most|at least|by default|up to|or more|may|above|a gain is|below|in a row|(?:less|more|longer) than)\b/i;
/** The command of a scope, or in one sentence where and how something was measured. */
const COMMAND = /--scope \w/;
const WHERE = /\bNode 2\d|\b(?:two|2) cores\b/;
const HOW = /(?<!not )\b(?:measured|medians?|rounds?|kills|connections|sample app)\b/;

const sentencesIn = (text: string): string[] => text.split(/(?<=[.?!;])\s+|\s\|\s|\n/);

/** The sections of a page, without what the report writes; of code, only that it runs a scope. */
function sectionsOf(page: string): string[] {
  return page
    .replace(/<!-- bench:begin.*?bench:end -->/s, '')
    .replace(/^\s*```.*?^\s*```/gms, (code) => COMMAND.exec(code)?.[0] ?? '')
    .split(/^(?=#+ )/m)
    .filter((text) => text !== '');
}

function saysConditions(text: string): boolean {
  const sentences = sentencesIn(text.replace(/\]\([^)]*\)/g, ']'));
  return COMMAND.test(text) || sentences.some((each) => WHERE.test(each) && HOW.test(each));
}

/** Whether a link of the text leads to a page or section that has all these figures. */
function linkHas(path: string, text: string, figures: string[]): boolean {
  return [...text.matchAll(/\]\(([^)#]*)#?([^)]*)\)/g)].some(([, file, anchor]) => {
    const target = file === '' ? path : normalize(join(dirname(path), file!));
    if (!DOCUMENTS.includes(target)) return false;
    const found = readDocument(target)
      .split(/^(?=#+ )/m)
      .filter((section) => anchor === '' || anchorsOf(section)[0] === anchor)
      .join('');
    return figures.every((figure) =>
      figure
        .match(/\d[\d.,]*\d|\d/g)!
        .every((number) => new RegExp(`(?<![\\d.,])${number}(?![\\d,]|\\.\\d)`).test(found)),
    );
  });
}

function withoutSource(path: string, page: string): string[] {
  const sections = sectionsOf(page);
  if (COMMAND.test(sections[0]!)) return []; // the command of the whole page
  return sections
    .filter((text) => !saysConditions(text))
    .flatMap(sentencesIn)
    .filter((sentence) => COST.test(sentence) && !LIMIT.test(sentence))
    .filter((sentence) => {
      const figures = sentence.match(FIGURES) ?? [];
      return figures.length > 0 && !linkHas(path, sentence, figures);
    });
}

it.each(DOCUMENTS)('%s says where each of its figures is from', (path) => {
  expect(withoutSource(path, readDocument(path))).toEqual([]);
});

it.each(DOCUMENTS)('%s has the marked figures as they were measured last', (path) => {
  const page = readDocument(path);
  expect(page, RUN_AGAIN).toBe(fillFigures(page, results));
});

it.each([
  ['README.md', readmeParts],
  ['docs/benchmarks.md', pageParts],
])('%s has the block of the last results', (path, partsOf) => {
  const page = readDocument(path);
  for (const part of partsOf(results)) {
    if (typeof part === 'string') expect(page, RUN_AGAIN).toContain(part);
    else {
      const told = rowsOf(page).map(String);
      const rows = part.rows.map((row) => String(row.cells.map((cell) => inMarkdown(cell, row))));
      expect(
        rows.filter((row) => !told.includes(row)),
        RUN_AGAIN,
      ).toEqual([]);
    }
  }
});

it('a marker without a run is told', () => {
  const page = '9<!-- fig keep-alive Express nobody cpuMicros -->';
  expect(() => fillFigures(page, results)).toThrow('keep-alive Express nobody cpuMicros');
});

it.each([
  ['A worker takes 12 MB.', 1],
  ['A worker takes 12<!-- fig a b c d --> MB.', 0],
  ['A worker takes at most 12 MB.', 0],
  ['A call costs 147 µs ([why](docs/cpu-bound-methods.md#threads-or-processes)).', 0],
  ['A call costs 146 µs ([why](docs/cpu-bound-methods.md#threads-or-processes)).', 1],
  ['A worker takes 12 MB. It was measured on Node 24.', 0],
])('a figure without a source is found: %s', (text, count) => {
  expect(withoutSource('README.md', `# A\n\n${text}\n`)).toHaveLength(count);
});
