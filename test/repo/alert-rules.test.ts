import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { readDocument, rowsOf } from '../support/documents.js';
import { alertRules, observabilityFile } from '../support/observability-files.js';

describe('the alert rules', () => {
  it('each say how urgent they are, what is the matter and what to do', () => {
    for (const { alert, labels, annotations } of alertRules()) {
      expect(alert).toMatch(/^NestjsCluster[A-Z]/);
      expect(labels, alert).toEqual({ severity: expect.stringMatching(/^(critical|warning)$/) });
      expect(Object.keys(annotations), alert).toEqual([
        'summary',
        'description',
        'remedy',
        'runbook_url',
      ]);
      expect(annotations['description'], alert).toMatch(/\.$/);
    }
  });

  it('say what to do, and lead to the row of the page of incidents that says it too', () => {
    const told = rowsOf(readDocument('docs/incidents.md')).flatMap(([name = '', , remedy = '']) => {
      const [, anchor, alert] = /^<a id="(.+)"><\/a>`(\w+)`$/.exec(name) ?? [];
      const text = remedy.replaceAll('`', '').replaceAll(/\[(.*?)\]\(.*?\)/g, 'the page $1');
      return anchor === undefined ? [] : [[alert, `${text}.`, `docs/incidents.md#${anchor}`]];
    });
    const rules = alertRules().map(({ alert, annotations }) => [
      alert,
      annotations['remedy'],
      annotations['runbook_url'],
    ]);
    expect(rules).toEqual(told);
  });

  it('are each in the table of their README, with their severity and a link to that row', () => {
    const listed = rowsOf(observabilityFile('README.md')).filter(([name]) =>
      name!.startsWith('[`Nestjs'),
    );
    const rules = alertRules().map(({ alert, labels, annotations }) => [
      `[\`${alert}\`](../../${annotations['runbook_url']})`,
      labels['severity'],
    ]);
    expect(rules).toEqual(listed.map(([name, severity]) => [name, severity]));
  });

  it('are each tested firing and not firing', () => {
    const { tests: groups } = parse(observabilityFile('alerts.test.yml')) as {
      tests: { alert_rule_test?: { alertname: string; exp_alerts: unknown[] }[] }[];
    };
    const tests = groups.flatMap(({ alert_rule_test }) => alert_rule_test ?? []);
    for (const { alert } of alertRules()) {
      const own = tests.filter(({ alertname }) => alertname === alert);
      const kinds = new Set(own.map(({ exp_alerts }) => exp_alerts.length > 0));
      expect(kinds, alert).toEqual(new Set([false, true]));
    }
  });
});
