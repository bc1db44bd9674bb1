import type { Logger } from '@nestjs/common';
import { Counter, Gauge, type Metric, Registry } from 'prom-client';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { SeriesLimit } from '../../../../src/observe/exposition/series-limit.js';
import { decodeBody, encodeBody } from '../../../../src/observe/exposition/metrics-body.js';
import { HttpMetrics } from '../../../../src/observe/metrics/http-metrics.js';
import { ProcessMetrics } from '../../../../src/observe/metrics/process-metrics.js';
import { READ_TIMEOUT_MS } from '../../../../src/contract/snapshot/index.js';
import { counter, gauge, samplesOf } from '../../support/metric-families.js';

afterEach(() => vi.useRealTimers());

const DROPPED = 'nestjs_cluster_dropped_samples_total';

function start({ workerLabel, limit }: { workerLabel?: number; limit?: SeriesLimit } = {}) {
  const app = new Registry();
  const warnings: string[] = [];
  const logger = { warn: (message: string) => void warnings.push(message) } as unknown as Logger;
  const metrics = new ProcessMetrics(app, workerLabel, logger, limit);
  return {
    app,
    metrics,
    warnings,
    read: async () => decodeBody(await metrics.serialize())!,
    samples: async () => samplesOf(decodeBody(await metrics.serialize())!),
  };
}

const registers: [] = [];

describe('the metrics of a worker', () => {
  it('are those of the app and ours, and say how they are to be merged', async () => {
    const { app, metrics, read } = start();
    new Counter({ name: 'app_total', help: 'a', registers: [app] }).inc(3);
    await metrics.extend(async () => ({
      all: [new Counter({ name: 'ours_total', help: 'o', registers })],
      labelled: [],
    }));
    metrics.http = new HttpMetrics([1], () => '/', metrics.limit);
    expect((await read()).map(({ name }) => name)).toEqual([
      'app_total',
      'ours_total',
      'http_request_duration_seconds',
      'http_response_size_bytes',
      'http_requests_aborted_total',
      DROPPED,
    ]);
  });

  it('have the default ones, and none that is misnamed', async () => {
    const { metrics, read } = start();
    metrics.measureDefaults();
    const families = await read();
    const names = families.map(({ name }) => name);
    expect(names).toContain('process_cpu_seconds_total');
    expect(names).toContain('nodejs_active_handles');
    // In OpenMetrics the suffix is a counter's.
    for (const { name, type } of families) {
      expect([name, name.endsWith('_total')]).toEqual([name, type === 'counter']);
    }
  });

  it('leave the registry of the app as it is', async () => {
    const { app, metrics, read } = start();
    metrics.measureDefaults();
    await metrics.extend(async () => ({
      all: [new Counter({ name: 'ours_total', help: 'o', registers })],
      labelled: [],
    }));
    await read();
    expect(app.getMetricsAsArray()).toEqual([]);
  });

  it('are those of the app where both have one of a name, and that is told once', async () => {
    const { app, metrics, samples, warnings } = start();
    new Gauge({ name: 'same', help: 'a', registers: [app] }).set(1);
    await metrics.extend(async () => ({
      all: [new Counter({ name: 'same', help: 'o', registers })],
      labelled: [],
    }));
    expect(await samples()).toEqual({ 'same{}': 1 });
    await samples();
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatch(/same names.*only the app's are shown: same\. .*Rename or remove/);
  });

  it('tell of each name once, also of those that come later, and of no default metric', () => {
    const { metrics, warnings } = start();
    metrics.warnOfConflicts([]);
    metrics.warnOfConflicts(['a', 'process_cpu_seconds_total', 'b']);
    metrics.warnOfConflicts(['b', 'c']);
    metrics.warnOfConflicts(['a', 'c']);
    expect(warnings.map((text) => /shown: (.*?)\./.exec(text)![1])).toEqual(['a, b', 'c']);
  });

  it('are all but one whose collect() fails, which is told once', async () => {
    const { app, samples, warnings } = start();
    new Gauge({ name: 'good', help: 'g', registers: [app] }).set(1);
    const collect = () => Promise.reject(new Error('database is gone'));
    new Gauge({ name: 'bad', help: 'b', registers: [app], collect });
    new Gauge({ name: 'after', help: 'a', registers: [app] }).set(2);
    expect(await samples()).toEqual({ 'good{}': 1, 'after{}': 2 });
    await samples();
    expect(warnings).toEqual([
      'The metric bad is left out, or as it was, while it cannot be read: Error: database is gone',
    ]);
  });

  it('are there in time where a collect() hangs, without that one', async () => {
    vi.useFakeTimers();
    const { app, samples, warnings } = start();
    new Gauge({ name: 'good', help: 'g', registers: [app] }).set(1);
    const collect = () => new Promise<void>(() => {});
    new Gauge({ name: 'bad', help: 'b', registers: [app], collect });
    let read: object | undefined;
    void samples().then((given) => (read = given));
    await vi.advanceTimersByTimeAsync(READ_TIMEOUT_MS - 1);
    expect(read).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1);
    expect(read).toEqual({ 'good{}': 1 });
    expect(warnings).toEqual([
      expect.stringMatching(/ bad is left out, .*: no answer within 250 ms$/),
    ]);
    expect(vi.getTimerCount()).toBe(0);
    // From then on it is not waited for.
    expect(await samples()).toEqual({ 'good{}': 1 });
  });
});

describe('samples that a worker leaves out', () => {
  it('are counted by metric, from the next time on', async () => {
    const { app, samples, metrics } = start({ limit: new SeriesLimit(2) });
    const one = new Counter({ name: 'c', help: 'c', labelNames: ['a'], registers: [app] });
    for (const a of ['x', 'y', 'z']) one.inc({ a });
    const dropped = `${DROPPED}{metric="c"}`;
    // The app's registry is read before the counts are.
    expect(await samples()).toEqual({ 'c{a="x"}': 1, 'c{a="y"}': 1, [dropped]: 1 });
    expect(await samples()).toMatchObject({ [dropped]: 2 });
    metrics.limit.dropped('c', 10);
    expect(await samples()).toMatchObject({ [dropped]: 13 });
  });

  it('are a counter that is there from the start', async () => {
    expect(await start().read()).toMatchObject([
      { name: DROPPED, type: 'counter', aggregator: 'sum', series: new Map() },
    ]);
  });
});

describe('a worker that labels its series', () => {
  const labelled = (name: string) => {
    const one = new Gauge({ name, help: 'l', labelNames: ['worker'], registers });
    one.set({ worker: 3 }, 7);
    return one as Metric;
  };

  it('has its slot on each of them, and on those that have it by themselves once', async () => {
    const { app, metrics, samples } = start({ workerLabel: 3 });
    new Counter({ name: 'app_total', help: 'a', registers: [app] }).inc(3);
    await metrics.extend(async () => ({
      all: [new Counter({ name: 'ours_total', help: 'o', registers })],
      labelled: [labelled('queue')],
    }));
    expect(await samples()).toEqual({
      'app_total{worker="3"}': 3,
      'ours_total{worker="3"}': 0,
      'queue{worker="3"}': 7,
    });
  });

  it('has them by themselves also where it does not', async () => {
    const { metrics, samples } = start();
    await metrics.extend(async () => ({ all: [], labelled: [labelled('queue')] }));
    expect(await samples()).toEqual({ 'queue{worker="3"}': 7 });
  });
});

describe('a worker that folds', () => {
  it('makes one body of what others had counted, and counts what it has to leave out', async () => {
    const { metrics, samples } = start({ limit: new SeriesLimit(1) });
    const bodies = [counter(1, { a: 'x' }), counter(2, { a: 'x' }), counter(4, { a: 'y' })].map(
      (one) => encodeBody([one, gauge(5)]),
    );
    const folded = decodeBody(metrics.fold(['', ...bodies, 'nonsense']));
    expect(samplesOf(folded!)).toEqual({ 'c{a="x"}': 3 });
    expect(await samples()).toEqual({ [`${DROPPED}{metric="c"}`]: 1 });
  });
});
