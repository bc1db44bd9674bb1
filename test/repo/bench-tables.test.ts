import { describe, expect, it } from 'vitest';
import { inMarkdown } from '../bench/report/cell-text.mjs';
import { COLUMNS, columnOf, columnsOf, withUnit } from '../bench/report/columns.mjs';
import { errorsByKind, measured, rate } from '../bench/report/format.mjs';
import { resultTables, tablesOf } from '../bench/report/result-tables.mjs';
import { benchChart, benchResult, benchRow } from '../unit/support/bench-results.js';

describe('numbers of the benchmark', () => {
  it.each([
    [0, '0'],
    [0.00141, '0.00141'],
    [0.4, '0.40'],
    [9.999, '10.0'],
    [22.34, '22.3'],
    [99.96, '100'],
    [448.4, '448'],
    [999.7, '1,000'],
    [10_429, '10,400'],
  ])('shows %f with three digits as %s', (value, text) => {
    expect(measured(value)).toBe(text);
  });

  it('shows large rates whole and small ones with their digits', () => {
    expect(rate(18_606.4)).toBe('18,606');
    expect(rate(11.24)).toBe('11.2');
  });

  it('names errors by kind, the most frequent first', () => {
    expect(errorsByKind({ timeout: 3, reset: 43, closed: 0 })).toBe('reset 43, timeout 3');
    expect(errorsByKind({ timeout: 0 })).toBe('0');
  });

  it('shows bytes as MB and a rate without a space before its unit', () => {
    expect(withUnit(52_900_000, columnOf('frontRssBytes'))).toBe('52.9 MB');
    expect(withUnit(18_606, columnOf('requestsPerSecond'))).toBe('18,606/s');
  });
});

describe('columns of the benchmark', () => {
  it('are those of which some row has a value, in one order whatever that of the rows', () => {
    const rows = [
      benchRow('Express', 'pm2', { p99Ms: 4, cpuMicros: 36, maxMs: null }),
      benchRow('Express', 'nestjs-cluster', { requestsPerSecond: 20_000 }),
      benchRow('Express', 'nginx', { notRun: 'nginx is missing', lost: 1 }),
    ];
    expect(columnsOf(rows).map(({ key }) => key)).toEqual([
      'requestsPerSecond',
      'cpuMicros',
      'p99Ms',
    ]);
  });

  it('have one title, one heading and one format each', () => {
    for (const { key, title, heading, format } of COLUMNS) {
      expect([key, typeof title, typeof heading, typeof format]).toEqual([
        key,
        'string',
        'string',
        'function',
      ]);
    }
    expect(new Set(COLUMNS.map(({ heading }) => heading)).size).toBe(COLUMNS.length);
  });
});

describe('the tables of a scope', () => {
  const rounds = [{ cpuMicros: 21.9 }, { cpuMicros: 22.6 }, { cpuMicros: 23.04 }];
  const result = benchResult({
    rows: [
      benchRow('Express', 'pm2', { cpuMicros: 36, cpuRatio: 1.593 }),
      benchRow('Express', 'nginx', { notRun: 'nginx is missing: apt-get install nginx-light' }),
      benchRow('Express', 'nestjs-cluster', { cpuMicros: 22.6, cpuRatio: 1, p50Ms: 2, rounds }),
      benchRow('Fastify', 'nestjs-cluster', { cpuMicros: 15 }),
    ],
  });

  it('are one for each group, with the columns that it has', () => {
    expect(resultTables(result).map(({ caption, head }) => [caption, ...head])).toEqual([
      ['Express', '', 'CPU per request, µs', '× nestjs-cluster', 'p50, ms'],
      ['Fastify', '', 'CPU per request, µs'],
    ]);
  });

  it('say why a row was not run, and show a dash where a value is missing', () => {
    const [express] = resultTables(result);
    expect(express?.rows.map(({ cells }) => cells.map(({ text }) => text))).toEqual([
      ['pm2', '36.0', '1.59', '–'],
      ['nginx, not run: nginx is missing: apt-get install nginx-light', '', '', ''],
      ['nestjs-cluster', '22.6', '1.00', '2.00'],
    ]);
  });

  it('show the least and the most of the rounds', () => {
    const spreads = resultTables(result)[0]?.rows.map(({ cells }) => cells[1]?.spread);
    expect(spreads).toEqual([undefined, undefined, '21.9–23.0']);
  });

  it('compare what the scope is about with nestjs-cluster by default', () => {
    const reloads = benchResult({
      chart: benchChart('p99Ms'),
      rows: [
        benchRow('Express', 'pm2', { p99Ms: 30, rounds: [{ p99Ms: 20 }, { p99Ms: 40 }] }),
        benchRow('Express', 'nestjs-cluster-reuse-port', { p99Ms: 15 }),
        benchRow('Express', 'nestjs-cluster', { p99Ms: 10 }),
      ],
    });
    const [table] = resultTables(reloads);
    expect(table?.head).toEqual(['', 'p99, ms', '× nestjs-cluster']);
    expect(table?.rows.map(({ cells }) => cells[2])).toEqual([
      { text: '3.00' },
      { text: '1.50' },
      { text: '1.00' },
    ]);
  });

  it('say what windows were compared with, and which differences are none', () => {
    const row = (system: string, metrics: object) =>
      benchRow('', system, { windows: [], cpuMicros: 22, cpuMicrosLeast: 20, ...metrics });
    const [table] = resultTables(
      benchResult({
        baseline: 'plain processes',
        rows: [
          row('reuse-port', { isBaseline: true, cpuRatio: 1 }),
          row('node-cluster', { cpuRatio: 1.04, difference: 0 }),
          row('nestjs-cluster', { cpuRatio: 1.1, difference: 0.0812 }),
        ],
      }),
    );
    expect(table?.head).toEqual([
      '',
      'CPU per request, µs',
      'least, µs',
      '× plain processes',
      'Difference',
    ]);
    expect(table?.rows.map(({ cells }) => cells.at(-1)?.text)).toEqual([
      '–',
      'no difference',
      '+8.12 %',
    ]);
  });

  it('compare nothing with zero', () => {
    const rows = [
      benchRow('Express', 'pm2', { lost: 46 }),
      benchRow('Express', 'nestjs-cluster', { lost: 0 }),
    ];
    const [table] = resultTables(benchResult({ chart: benchChart('lost'), rows }));
    expect(table?.head).toEqual(['', 'Lost']);
  });

  it('end with what the article found', () => {
    const found = [{ article: 'An article', said: '2.9 times', measured: '1.6 times' }];
    const table = tablesOf(benchResult({ rows: [], found }))[0];
    expect(table?.head).toEqual(['article', 'the article found', 'measured now']);
    expect(table?.rows[0]?.cells.map(({ text }) => text)).toEqual([
      'An article',
      '2.9 times',
      '1.6 times',
    ]);
  });

  it('are bold in rows of nestjs-cluster, and a text cannot end its cell', () => {
    expect(inMarkdown({ text: '22.6', spread: '21.9–23.0' }, { ours: true })).toBe(
      '**22.6** <sub>21.9–23.0</sub>',
    );
    expect(inMarkdown({ text: 'a | b', spread: undefined }, { ours: false })).toBe('a \\| b');
    expect(inMarkdown({ text: '–', spread: undefined }, { ours: true })).toBe('–');
  });
});
