import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  alertRules,
  observabilityFile,
  recordingRules,
  ruleTests,
} from '../support/observability-files.js';

const README = readFileSync(join(import.meta.dirname, '../../README.md'), 'utf8');

describe('the alert rules', () => {
  it('each say how urgent they are, what is the matter and where to read on', () => {
    for (const { alert, labels, annotations } of alertRules()) {
      expect(alert).toMatch(/^NestjsCluster[A-Z]/);
      expect(labels, alert).toEqual({ severity: expect.stringMatching(/^(critical|warning)$/) });
      expect(Object.keys(annotations), alert).toEqual(['summary', 'description', 'readme']);
      expect(annotations['description'], alert).toMatch(/\.$/);
    }
  });

  it('point at headings that the README has', () => {
    const anchors = [...README.matchAll(/^#+ (.*)$/gm)].map(([, title]) => anchorOf(title!));
    for (const { alert, annotations } of alertRules()) {
      const [file, anchor] = annotations['readme']!.split('#');
      expect(file, alert).toBe('README.md');
      expect(anchors, alert).toContain(anchor);
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

/** As GitHub makes it of a heading. */
function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
}
