// Redraws what the benchmark measured: npm run bench:report
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { renderMarkdown, renderPlainTable } from './report/markdown.mjs';
import { readResults } from './report/read-results.mjs';
import { reportParts } from './report/report-parts.mjs';
import { tablesOf } from './report/result-tables.mjs';

const RESULTS = fileURLToPath(new URL('results', import.meta.url));
const root = new URL('../../', import.meta.url);
const README = fileURLToPath(new URL('README.md', root));
const DOCS = fileURLToPath(new URL('docs', root));

/** Writes report.md and the charts of every result in a directory; returns the results. */
export async function writeReport(directory) {
  // Only here: the runner imports this file too, and measures before it draws.
  const { drawChart } = await import('./report/draw-chart.mjs');
  const results = readResults(directory);
  for (const result of results) {
    const charts = drawChart(result) ?? {};
    for (const [theme, svg] of Object.entries(charts)) {
      writeFileSync(join(directory, `${result.scope}-${theme}.svg`), svg);
    }
  }
  writeFileSync(join(directory, 'report.md'), renderMarkdown(reportParts(results)));
  return results;
}

/** The tables of one result, what an article found among them, as text for a terminal. */
export function renderTables(result) {
  return tablesOf(result).map(renderPlainTable).join('\n\n');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { pageParts, readmeParts } = await import('./report/page-parts.mjs');
  const { rewrite, writeBlock } = await import('./report/page-block.mjs');
  const { fillFigures } = await import('./report/figures.mjs');
  const results = await writeReport(RESULTS);
  await writeBlock(README, renderMarkdown(readmeParts(results)));
  await writeBlock(join(DOCS, 'benchmarks.md'), renderMarkdown(pageParts(results)));
  const pages = readdirSync(DOCS).filter((name) => name.endsWith('.md'));
  for (const page of [README, ...pages.map((name) => join(DOCS, name))]) {
    await rewrite(page, (text) => fillFigures(text, results));
  }
  console.log(`${results.length} scopes: test/bench/results/report.md, README.md, docs/*.md`);
}
