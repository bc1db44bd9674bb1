import { describe, expect, it } from 'vitest';
import { anchorsOf, readDocument } from '../support/documents.js';
import {
  alertRules,
  observabilityFile,
  recordingRules,
  ruleTests,
} from '../support/observability-files.js';

describe('the alert rules', () => {
  it('each say how urgent they are, what is the matter and where to read on', () => {
    for (const { alert, labels, annotations } of alertRules()) {
      expect(alert).toMatch(/^NestjsCluster[A-Z]/);
      expect(labels, alert).toEqual({ severity: expect.stringMatching(/^(critical|warning)$/) });
      expect(Object.keys(annotations), alert).toEqual(['summary', 'description', 'docs']);
      expect(annotations['description'], alert).toMatch(/\.$/);
    }
  });

  it('point at headings that the documentation has', () => {
    for (const { alert, annotations } of alertRules()) {
      const [file, anchor] = annotations['docs']!.split('#');
      expect(file, alert).toMatch(/^docs\//);
      expect(anchorsOf(readDocument(file!)), alert).toContain(anchor);
    }
  });

  it('are all in the table of their README, with what to do', () => {
    const rows = [...observabilityFile('README.md').matchAll(/^\| `(NestjsCluster\w+)`/gm)];
    expect(rows.map(([, alert]) => alert)).toEqual(alertRules().map(({ alert }) => alert));
  });

  it('are each tested firing and not firing', () => {
    const tests = ruleTests().tests.flatMap(({ alert_rule_test }) => alert_rule_test ?? []);
    for (const { alert } of alertRules()) {
      const own = tests.filter(({ alertname }) => alertname === alert);
      const kinds = new Set(own.map(({ exp_alerts }) => exp_alerts.length > 0));
      expect(kinds, alert).toEqual(new Set([false, true]));
    }
  });
});

describe('the recording rules', () => {
  it('are named level:metric:operations, and each but once', () => {
    const records = recordingRules().map(({ record }) => record);
    expect(new Set(records).size).toBe(records.length);
    for (const record of records) expect(record).toMatch(/^instance(_[a-z]+)*:[a-z_]+:[a-z0-9_]+$/);
  });
});
