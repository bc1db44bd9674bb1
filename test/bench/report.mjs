// Writes the tables of what was measured: npm run bench:report
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fillFigures, pageBlock, readmeBlock, report } from './report/pages.mjs';

const RESULTS = fileURLToPath(new URL('results', import.meta.url));
const root = fileURLToPath(new URL('../../', import.meta.url));

/** The articles first; then what is asked beyond them. */
const ORDER =
  'gzip-page slow fibonacci steady keep-alive new-connections evenness mixed reloads kills memory scrape soak'.split(
    ' ',
  );

/** Every result in a directory, in the order of the report. */
export function readResults(directory = RESULTS) {
  const place = ({ scope }) => ORDER.indexOf(scope);
  return readdirSync(directory)
    .filter((name) => name.endsWith('.json'))
    .map((name) => JSON.parse(readFileSync(join(directory, name), 'utf8')))
    .toSorted((a, b) => place(a) - place(b));
}

export function writeReport() {
  const results = readResults();
  writeFileSync(join(RESULTS, 'report.md'), report(results));
  return results;
}

/** A page with this block between its markers, and with the marked figures as they were measured last. */
export function withFigures(page, results, block) {
  const filled = fillFigures(page, results);
  if (block === undefined) return filled;
  const [before, , after] = filled.split(/(?<=<!-- bench:begin -->)|(?=<!-- bench:end -->)/);
  return `${before}\n\n${block}\n\n${after}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const results = writeReport();
  const blocks = {
    'README.md': readmeBlock(results),
    'docs/benchmarks.md': pageBlock(results),
  };
  const pages = readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md'));
  for (const name of ['README.md', ...pages.map((page) => `docs/${page}`)]) {
    const file = join(root, name);
    const page = readFileSync(file, 'utf8');
    writeFileSync(file, withFigures(page, results, blocks[name]));
  }
  console.log(`${results.length} scopes: test/bench/results/report.md, README.md, docs/*.md`);
}
