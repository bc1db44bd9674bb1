import { describe, expect, it } from 'vitest';
import { checkQuery, type Metrics } from '../support/promql.js';

const METRICS: Metrics = new Map([
  ['up', { labels: new Set(['job', 'instance']), accumulates: false }],
  ['jobs_total', { labels: new Set(['job', 'instance', 'kind']), accumulates: true }],
  ['wait_bucket', { labels: new Set(['job', 'instance', 'kind', 'le']), accumulates: true }],
]);

function problemsOf(expression: string): readonly string[] {
  return checkQuery(expression, METRICS).problems;
}

function labelsOf(expression: string): string[] {
  return [...checkQuery(expression, METRICS).labels].sort();
}

describe('what is said of a PromQL expression', () => {
  it.each([
    ['sum by (kind) (rate(jobs_total{kind=~"a|b"}[5m])) > 0.5', ['kind']],
    ['sum without (kind) (jobs_total) / up', ['instance', 'job']],
    ['histogram_quantile(0.99, sum by (kind, le) (rate(wait_bucket[5m])))', ['kind']],
    ['max by (kind) (jobs_total) or vector(0)', ['kind']],
    ['max by (kind) (jobs_total) or max by (job) (up)', ['job', 'kind']],
    ['jobs_total unless on (job) up offset 15m', ['instance', 'job', 'kind']],
    ['jobs_total * on (job, instance) group_left up', ['instance', 'job', 'kind']],
    ['up * on (job) group_left (kind) jobs_total', ['instance', 'job', 'kind']],
    ['up and on (job) jobs_total{kind="and"}', ['instance', 'job']],
    ['absent(up{job="x"})', ['instance', 'job']],
    ['1 - up', ['instance', 'job']],
    ['resets(up[1h]) >= 3', ['instance', 'job']],
    ['sum(jobs_total)', []],
    ['topk(3, jobs_total)', ['instance', 'job', 'kind']],
  ])('is nothing for %s, and which labels it gives', (expression, labels) => {
    expect(problemsOf(expression)).toEqual([]);
    expect(labelsOf(expression)).toEqual(labels);
  });

  it.each([
    ['rate(job_total[5m])', 'no metric job_total'],
    ['jobs_total{sort="a"}', 'no label sort'],
    ['sum by (sort) (jobs_total)', 'no label sort'],
    ['sum without (sort) (jobs_total)', 'no label sort'],
    ['sum by (kind) (sum by (job) (jobs_total))', 'no label kind'],
    ['jobs_total / on (kind) group_left () up', 'no label kind'],
    ['jobs_total * on (job) group_left (kind) up', 'no label kind'],
    ['jobs_total / up', '{instance, job, kind} / {instance, job} match nothing'],
    ['histogram_quantile(0.5, sum by (kind) (wait_bucket))', 'no label le'],
    ['rate(up[5m])', 'rate() of up, which is no counter'],
    ['sum(rate(jobs_total[5m])', 'syntax error'],
    ['jobs_total >', 'syntax error'],
  ])('tells what is wrong with %s', (expression, problem) => {
    expect(problemsOf(expression)).toContainEqual(expect.stringContaining(problem));
  });
});
