import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readDocument } from '../support/documents.js';
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

/** The metrics of the reference. exposed.test.ts compares it with what a cluster shows. */
const DOCUMENTED = [
  ...readDocument('docs/reference/metrics.md').matchAll(/^\| `(\w+_\w+)(?:\{|` *\|)/gm),
].map(([, name]) => name!);

describe('the reference of the metrics', () => {
  it('has every metric that the rules and the dashboard ask for', () => {
    const known = new Set([
      ...DOCUMENTED.flatMap((name) => [name, `${name}_bucket`, `${name}_sum`, `${name}_count`]),
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
    const ours = DOCUMENTED.filter((name) => /^(nestjs_cluster|http)_/.test(name));
    expect(ours.length).toBeGreaterThan(30);
    expect(ours.filter((name) => !new RegExp(`\\b${name}`).test(shown))).toEqual([]);
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

function promtool(args: readonly string[]) {
  return runCommand('promtool', args, { cwd: OBSERVABILITY, env: SYSTEM_ENVIRONMENT });
}
