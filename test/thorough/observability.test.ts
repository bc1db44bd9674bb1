import { writeFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
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
  OBSERVABILITY,
  recordingRules,
} from '../support/observability-files.js';
import { runCommand } from '../support/run-command.js';
import { describeWith, SYSTEM_ENVIRONMENT } from '../support/system-packages.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

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

  it('has every metric that the rules and the dashboard ask for', () => {
    const known = new Set([
      ...[...page.text.matchAll(/^(\w+)[{ ]/gm)].map(([, name]) => name!),
      ...documentedMetrics().flatMap((name) => [
        name,
        `${name}_bucket`,
        `${name}_sum`,
        `${name}_count`,
      ]),
      ...recordingRules().map(({ record }) => record),
    ]);
    const asked = [
      ...recordingRules(),
      ...alertRules(),
      ...dashboardQueries(dashboardFile()),
    ].flatMap(
      ({ expr }) =>
        expr.match(/\b(?:nestjs_cluster|http|process|nodejs)_\w+|\binstance\w*:[\w:]+/g) ?? [],
    );
    expect(asked.length).toBeGreaterThan(50);
    expect(asked.filter((name) => !known.has(name))).toEqual([]);
  });

  it('has no metric of a cluster that the dashboard does not show', () => {
    const shown = dashboardQueries(dashboardFile())
      .map(({ expr }) => expr)
      .join('\n');
    const documented = documentedMetrics();
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

  it('accepts every query of the dashboard', async () => {
    const rules = dashboardQueries(dashboardFile()).map(({ expr }, i) => ({
      record: `q:${i}`,
      expr,
    }));
    const file = join(temporaryDirectory(), 'dashboard.yml');
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }));
    const { code, stdout, stderr } = await promtool(['check', 'rules', file]);
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

/** Names in the reference. */
function documentedMetrics(): string[] {
  const page = readDocument('docs/reference/metrics.md');
  return [...page.matchAll(/^\| `((?:nestjs_cluster|http)_\w+)/gm)].map(([, name]) => name!);
}
