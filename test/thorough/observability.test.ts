import http from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { readDocument } from '../support/documents.js';
import { eventually } from '../support/eventually.js';
import { request } from '../support/http-client.js';
import { MetricsPage } from '../support/metrics-page.js';
import {
  alertRules,
  dashboardFile,
  dashboardQueries,
  labelsIn,
  OBSERVABILITY,
  recordingRules,
} from '../support/observability-files.js';
import { checkQuery, type MetricFacts, type Metrics } from '../support/promql.js';
import { runCommand } from '../support/run-command.js';
import { describeWith, SYSTEM_ENVIRONMENT } from '../support/system-packages.js';

/** Labels that Prometheus adds to every series that it scrapes. */
const TARGET_LABELS = ['job', 'instance'];

/** Metrics that Prometheus adds to the metrics of a target. */
const PROMETHEUS_METRICS: readonly [string, readonly string[]][] = [
  ['up', []],
  ['scrape_duration_seconds', []],
  ['scrape_samples_scraped', []],
  ['ALERTS', ['alertname', 'alertstate', 'severity']],
];

/** Metrics of the app have it too where `metrics.perWorker` is set. */
const PER_WORKER = /^(http_|nestjs_cluster_(event_loop|offload)_)/;

describe('what the sample app shows of itself', () => {
  let page: MetricsPage;
  let text: string;

  beforeAll(async () => {
    const cluster = await ClusterProcess.start({
      program: 'sample',
      options: { workers: 2, admin: { port: 0 } },
    });
    const adminUrl = String(cluster.all('listening')[0]!['adminUrl']);
    await useEverything(cluster.url);
    text = await eventually(
      'a page with all that was done',
      async () => (await request(adminUrl, '/metrics')).body,
      (body) => /^http_requests_aborted_total\{/m.test(body) && body.includes('/offload/fib/:n'),
    );
    page = new MetricsPage(text);
  });

  afterAll(stopAll);

  it('has every metric and label that the rules and the dashboard ask for', () => {
    const metrics = metricsOf(page);
    const problems: string[] = [];
    for (const { record, expr } of recordingRules()) {
      const report = checkQuery(expr, metrics);
      problems.push(...report.problems.map((problem) => `${record}: ${problem}`));
      // Rules further down may use this one.
      metrics.set(record, { labels: report.labels, accumulates: false });
      const [level] = record.split(':');
      for (const label of level!.split('_')) {
        if (!report.labels.has(label)) problems.push(`${record} has no label ${label}`);
      }
    }
    for (const { alert, expr, annotations } of alertRules()) {
      const text = Object.values(annotations).join();
      problems.push(...problemsOf({ where: alert, expr, text }, metrics));
    }
    for (const query of dashboardQueries(dashboardFile())) {
      problems.push(...problemsOf(query, metrics));
    }
    expect(problems).toEqual([]);
  });

  it('has no metric of a cluster that the dashboard does not show', () => {
    const shown = dashboardQueries(dashboardFile())
      .map(({ expr }) => expr)
      .join('\n');
    const documented = documentedMetrics().map(([name]) => name);
    expect(documented.length).toBeGreaterThan(30);
    const missing = documented.filter((name) => !new RegExp(`\\b${name}`).test(shown));
    expect(missing).toEqual([]);
  });

  describeWith(['promtool'], 'promtool', () => {
    it('finds nothing to say of the metrics', async () => {
      expect(await promtool(['check', 'metrics'], text)).toEqual({
        code: 0,
        stdout: '',
        stderr: '',
      });
    });
  });
});

describeWith(['promtool'], 'promtool', () => {
  it.each([
    ['the rules', ['check', 'rules', 'recording.rules.yml', 'alerts.rules.yml']],
    ['the configuration of Prometheus', ['check', 'config', 'prometheus.yml']],
    ['what the alerts fire at, and what not', ['test', 'rules', 'alerts.test.yml']],
  ])('accepts %s', async (_what, args) => {
    const { code, stdout, stderr } = await promtool(args);
    expect(code, stdout + stderr).toBe(0);
  });
});

/** A request of each kind, so that every metric has series. */
async function useEverything(url: string): Promise<void> {
  for (const path of ['/hello', '/nowhere', '/fib/46']) await request(url, path);
  await eventually(
    'a thread in time',
    () => request(url, '/offload/fib/20'),
    ({ status }) => status === 200,
  );
  const given = http.get(`${url}/wait/60000`);
  given.on('error', () => {}); // it is cut off on purpose
  await eventually('a request in flight', async () => {
    const { body } = await request(url, '/metrics');
    return new MetricsPage(body).sum('nestjs_cluster_worker_requests_in_flight') >= 2;
  });
  given.destroy();
}

function promtool(args: readonly string[], input = '') {
  return runCommand('promtool', args, { cwd: OBSERVABILITY, env: SYSTEM_ENVIRONMENT, input });
}

/** What is wrong with a query, and with the labels that stand in a text for its result. */
function problemsOf(
  { where, expr, text }: { where: string; expr: string; text: string },
  metrics: Metrics,
): string[] {
  const { problems, labels } = checkQuery(expr, metrics);
  const unknown = labelsIn(text).filter((label) => !labels.has(label));
  return [
    ...problems.map((problem) => `${where}: ${problem}`),
    ...unknown.map((label) => `${where}: {{${label}}} is no label of ${expr}`),
  ];
}

/** Series of the page, of the reference where there is none yet, and of Prometheus itself. */
function metricsOf(page: MetricsPage): Map<string, MetricFacts> {
  const metrics = new Map<string, MetricFacts>();
  const add = (name: string, labels: readonly string[], accumulates: boolean): void => {
    const worker = PER_WORKER.test(name) ? ['worker'] : [];
    metrics.set(name, { labels: new Set([...TARGET_LABELS, ...labels, ...worker]), accumulates });
  };
  for (const [name, labels] of PROMETHEUS_METRICS) add(name, labels, false);
  const documented = new Map(documentedMetrics());
  for (const [, name, type] of page.text.matchAll(/^# TYPE (\S+) (\w+)$/gm)) {
    const accumulates = type !== 'gauge';
    const names =
      type === 'histogram' ? ['_bucket', '_sum', '_count'].map((s) => name + s) : [name!];
    for (const series of names) {
      const found = labelsOfSeries(page, series);
      const labels = found.length > 0 ? found : (documented.get(name!) ?? []);
      add(series, labels, accumulates);
    }
  }
  return metrics;
}

function labelsOfSeries(page: MetricsPage, name: string): string[] {
  const [, labels = ''] = new RegExp(`^${name}\\{(.*)\\} \\S+$`, 'm').exec(page.text) ?? [];
  return [...labels.matchAll(/(\w+)="(?:[^"\\]|\\.)*"/g)].map(([, label]) => label!);
}

/** Names and labels in the reference. */
function documentedMetrics(): [string, string[]][] {
  const page = readDocument('docs/reference/metrics.md');
  return [...page.matchAll(/^\| `((?:nestjs_cluster|http)_\w+)(?:\{([\w,]+)\})?`/gm)].map(
    ([, name, labels = '']) => [name!, labels.split(',').filter(Boolean)],
  );
}
