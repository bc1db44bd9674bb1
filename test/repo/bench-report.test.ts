import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { check } from 'prettier';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { aheadList, aheadOf, aheadSummary } from '../bench/report/ahead.mjs';
import { readResults } from '../bench/report/read-results.mjs';
import { replaceBlock, writeBlock } from '../bench/report/page-block.mjs';
import { figureTables, pageParts, readmeParts } from '../bench/report/page-parts.mjs';
import { reportParts } from '../bench/report/report-parts.mjs';
import { inOrder } from '../bench/report/scope-order.mjs';
import { benchChart, benchResult, benchRow } from '../unit/support/bench-results.js';

interface BenchCells {
  readonly cells: readonly { readonly text: string }[];
}

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'bench-report-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

const keepAlive = benchResult({
  rows: [
    benchRow('Express', 'iptables', { cpuMicros: 20, p99Ms: 5 }),
    benchRow('Express', 'reuse-port', { cpuMicros: 21.5, p99Ms: 4 }),
    benchRow('Express', 'nginx', { notRun: 'nginx is missing' }),
    benchRow('Express', 'nestjs-cluster-reuse-port', { cpuMicros: 18, p99Ms: 5 }),
    benchRow('Express', 'nestjs-cluster', { cpuMicros: 22, p99Ms: 5, lost: 0 }),
    benchRow('Fastify', 'iptables', { cpuMicros: 14, requestsPerSecond: 20_000 }),
    benchRow('Fastify', 'nestjs-cluster', { cpuMicros: 16, requestsPerSecond: 18_000 }),
  ],
});
const reloads = benchResult({
  scope: 'reloads',
  title: 'Reloads',
  command: 'npm run bench -- --scope reloads',
  chart: benchChart('lost', { unit: '' }),
  rows: [
    benchRow('Express', 'pm2', { lost: 46, asked: 12_000, p99Ms: 9 }),
    benchRow('Express', 'nestjs-cluster', { lost: 0, p99Ms: 9.1 }),
  ],
});

describe('the report of the benchmark', () => {
  it('has the articles first, then the other scopes, then those that nobody has listed', () => {
    const scopes = ['zebra', 'memory', 'cost-node-20', 'cost', 'abacus', 'steady', 'gzip-page'];
    expect(inOrder(scopes.map((scope) => ({ scope }))).map(({ scope }) => scope)).toEqual([
      'gzip-page',
      'steady',
      'cost',
      'cost-node-20',
      'memory',
      'abacus',
      'zebra',
    ]);
  });

  it('is of every JSON file of the folder, in that order', () => {
    const memory = benchResult({ scope: 'memory' });
    for (const result of [memory, reloads, keepAlive]) {
      writeFileSync(join(directory, `${result.scope}.json`), JSON.stringify(result));
    }
    writeFileSync(join(directory, 'report.md'), 'not a result');
    expect(readResults(directory)).toEqual([keepAlive, reloads, memory]);
  });

  it.each(['{', '{"scope":"overhead","results":[]}', 'null'])(
    'names a file that holds %s',
    (text) => {
      writeFileSync(join(directory, 'old.json'), text);
      expect(() => readResults(directory)).toThrow(join(directory, 'old.json'));
    },
  );

  it('refuses what was measured on a machine in use', () => {
    const path = join(directory, 'keep-alive.json');
    writeFileSync(path, JSON.stringify({ ...keepAlive, forced: true }));
    expect(() => readResults(directory)).toThrow(`${path} was measured with --force`);
  });

  it('begins with its contents, and says of each scope how it was measured', () => {
    const texts = reportParts([keepAlive, reloads]).filter((part) => typeof part === 'string');
    expect(texts[2]).toBe('- [Keep-alive](#keep-alive)\n- [Reloads](#reloads)');
    expect(texts).toContain('<a id="ahead"></a>\n\n## Where another system is ahead');
    expect(texts).toContain('<a id="reloads"></a>\n\n## Reloads');
    expect(texts).toContain('```sh\nnpm run bench -- --scope reloads\n```');
    expect(texts).toContain(
      [
        '- Parameters: seconds 5, rounds 3',
        '- Machine: Some CPU, 2 cores, 8.0 GB, kernel 6.1.0',
        '- Versions: Node 24.21.0, pm2 7.0.4',
        '- Date: 2026-11-21',
      ].join('\n'),
    );
  });
});

describe('where another system is ahead', () => {
  it('is every main metric of another system that is better by more than 3 %', () => {
    const ahead = aheadOf([keepAlive, reloads]);
    expect(ahead.map(({ group, system, metric }) => `${group} ${system} ${metric}`)).toEqual([
      'Express iptables cpuMicros',
      'Fastify iptables cpuMicros',
      'Fastify iptables requestsPerSecond',
    ]);
  });

  it('is said by system and metric, with both values', () => {
    expect(aheadList([keepAlive, reloads])).toBe(
      [
        '- **iptables**',
        '  - CPU per request, 9 to 13 % lower: Keep-alive (Express 20.0 against 22.0 µs, Fastify 14.0 against 16.0 µs).',
        '  - Requests per second, 11 % higher: Keep-alive (Fastify 20,000 against 18,000/s).',
      ].join('\n'),
    );
  });

  it('is 100 % only where the other has nothing at all', () => {
    const rows = [2, 0].map((lightP99Ms, i) => benchRow('', `peer ${i}`, { lightP99Ms }));
    const mixed = benchResult({
      rows: [...rows, benchRow('', 'nestjs-cluster', { lightP99Ms: 2_700 })],
    });
    expect(aheadList([mixed])).toContain('99 % lower: Keep-alive (2.00 against 2,700 ms)');
    expect(aheadList([mixed])).toContain('100 % lower: Keep-alive (0 against 2,700 ms)');
  });

  it('compares memory where it was measured for itself', () => {
    const rows = [
      benchRow('', 'pm2', { workerRssBytes: 90e6 }),
      benchRow('', 'nestjs-cluster', { workerRssBytes: 100e6 }),
    ];
    const memory = benchResult({ scope: 'memory', title: 'Memory', rows });
    const other = benchResult({ rows });
    expect(aheadOf([other, memory]).map(({ title }) => title)).toEqual(['Memory']);
    expect(aheadOf([other]).map(({ title }) => title)).toEqual(['Keep-alive']);
  });

  it('is in the CPU of a request where windows that were compared agree', () => {
    const rows = (pm2: object, ours: object) => [
      benchRow('', 'pm2', { cpuMicros: 20, ...pm2 }),
      benchRow('', 'nestjs-cluster', { cpuMicros: 22, ...ours }),
    ];
    const systems = (pm2: object, ours: object) =>
      aheadOf([benchResult({ rows: rows(pm2, ours) })]).map(({ system }) => system);
    expect(systems({ difference: -0.025 }, { isBaseline: true })).toEqual(['pm2']);
    expect(systems({ difference: 0 }, { isBaseline: true })).toEqual([]);
    expect(systems({ isBaseline: true }, { difference: 0.08 })).toEqual(['pm2']);
    expect(systems({ isBaseline: true }, { difference: 0 })).toEqual([]);
  });

  it('is in the README a line for each system, of the figures that it shows, ten at most', () => {
    const figures = [
      { scope: 'keep-alive', metric: 'cpuMicros' },
      { scope: 'reloads', metric: 'lost' },
    ];
    expect(aheadSummary([keepAlive, reloads], figures)).toBe(
      '- **iptables**: CPU per request 9 to 13 % lower.',
    );
    expect(aheadSummary([reloads], figures)).toBe('Nowhere, in these figures.');
    const many = Array.from({ length: 12 }, (_, i) => benchRow('', `peer ${i}`, { cpuMicros: 10 }));
    const rows = [...many, benchRow('', 'nestjs-cluster', { cpuMicros: 22 })];
    const lines = aheadSummary([benchResult({ rows })], figures).split('\n');
    expect(lines).toHaveLength(10);
    expect(lines[9]).toBe('- and 3 other systems.');
  });

  it('is nowhere where nothing is better', () => {
    expect(aheadList([reloads])).toBe('Nowhere, in these measurements.');
  });
});

describe('the figures of the documentation', () => {
  it('are a table for each group, with a row for each system and a column for each scope', () => {
    expect(figureTables([keepAlive, reloads])).toMatchObject([
      {
        caption: 'Express',
        head: ['', 'Keep-alive, CPU µs', 'Lost in reloads'],
      },
      { caption: 'Fastify', head: ['', 'Keep-alive, CPU µs'] },
    ]);
    const [express] = figureTables([keepAlive, reloads]);
    expect(express?.rows.map(({ cells }) => cells.map(({ text }) => text))).toEqual([
      ['iptables', '20.0', '–'],
      ['reuse-port', '21.5', '–'],
      ['nginx', 'not run', '–'],
      ['nestjs-cluster-reuse-port', '18.0', '–'],
      ['nestjs-cluster', '22.0', '0'],
      ['pm2', '–', '46 of 12,000'],
    ]);
  });

  it('come with the charts, the commands, the conditions and what others do better', () => {
    const parts = pageParts([keepAlive, reloads]);
    const text = parts
      .map((part) => (typeof part === 'string' ? part : JSON.stringify(part)))
      .join('\n');
    expect(text).toContain('Node 24.21.0; Some CPU, 2 cores, 8.0 GB, kernel 6.1.0; 2026-11-21.');
    expect(text).toContain('src="../test/bench/results/keep-alive-light.svg"');
    expect(text).toContain('[Reloads](../test/bench/results/report.md#reloads)');
    expect(text).toContain('`npm run bench -- --scope reloads`');
    expect(text).toContain('- **iptables**');
  });

  it('are in the README those of the systems that a reader most likely has', () => {
    const [, table] = readmeParts([keepAlive, reloads]) as [
      string,
      { head: string[]; rows: BenchCells[] },
    ];
    expect(table.head).toEqual(['', 'reuse-port', 'nestjs-cluster', 'pm2']);
    expect(table.rows.map(({ cells }) => cells.map(({ text }) => text))).toEqual([
      ['Keep-alive, CPU µs (Express)', '21.5', '22.0', '–'],
      ['Lost in reloads (Express)', '–', '0', '46 of 12,000'],
      ['Keep-alive, CPU µs (Fastify)', '–', '16.0', '–'],
    ]);
  });

  it.each([
    ['commit', { commit: 'abc1234' }],
    ['machine', { machine: { cpu: 'Another CPU', cores: 64 } }],
  ])('are of one %s: results of another are in no table', (_, other) => {
    const text = (parts: readonly unknown[]): string => JSON.stringify(parts);
    const results = [keepAlive, { ...reloads, ...other }];
    expect(text(readmeParts(results))).not.toContain('46 of 12,000');
    expect(text(pageParts(results))).not.toContain('46 of 12,000');
    expect(text(pageParts(results))).toContain(
      'in no table above: [Reloads](../test/bench/results/report.md#reloads).',
    );
  });

  it('replace what is between the markers, and nothing else', () => {
    const readme = 'a\n\n<!-- bench:begin -->\n\nold\n\n<!-- bench:end -->\n\nb\n';
    expect(replaceBlock(readme, 'new\n', 'a.md')).toBe(readme.replace('old', 'new'));
    expect(() => replaceBlock('no markers', 'new', 'a.md')).toThrow(
      /^a\.md .*<!-- bench:begin -->/,
    );
  });

  it('are as prettier wants them, and the same when they are written again', async () => {
    const path = join(directory, 'README.md');
    writeFileSync(path, '# A\n\n<!-- bench:begin -->\n<!-- bench:end -->\n\nend\n');
    const markdown = '|a|b|\n|:-|-:|\n|**x**|1 <sub>1–2</sub>|\n\n* item\n\n  * inner';
    await writeBlock(path, markdown);
    const once = readFileSync(path, 'utf8');
    expect(await check(once, { filepath: path })).toBe(true);
    expect(once).toContain('| **x** | 1 <sub>1–2</sub> |');
    await writeBlock(path, markdown);
    expect(readFileSync(path, 'utf8')).toBe(once);
  });
});
