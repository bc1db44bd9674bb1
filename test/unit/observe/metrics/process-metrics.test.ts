import type { Logger } from '@nestjs/common';
import * as client from 'prom-client';
import * as successor from 'prometheus-io-client';
import { Counter, Gauge, Registry } from 'prom-client';
import { describe, expect, it, vi } from 'vitest';
import {
  MAX_METRICS_BODY_LENGTH,
  type MetricsRegistry,
  type PrometheusClient,
  READ_TIMEOUT_MS,
} from '../../../../src/contract/snapshot/types.js';
import { decodeMetrics } from '../../../../src/contract/snapshot/metrics-body.js';
import { HttpMetrics } from '../../../../src/worker/serve/http-metrics.js';
import { ProcessMetrics } from '../../../../src/observe/metrics/process-metrics.js';
import { samplesOf } from '../../support/metric-json.js';

/** The metrics of a process whose app has two registries. */
function start(workerLabel?: number, of: object = client) {
  const [app, other] = [new Registry(), new Registry()];
  const warnings: string[] = [];
  const logger = { warn: (message: string) => void warnings.push(message) } as unknown as Logger;
  const metrics = new ProcessMetrics(
    of as PrometheusClient,
    [app, other] as unknown as MetricsRegistry[],
    workerLabel,
    logger,
  );
  const read = async () => decodeMetrics(await metrics.serialize());
  return { app, other, metrics, warnings, read, samples: async () => samplesOf(await read()) };
}

const registers: [] = [];
const ours = () => ({ all: [new Counter({ name: 'ours_total', help: 'o', registers })] });

describe('the metrics of a process', () => {
  it("are those of the app's registries and ours", async () => {
    const { app, other, metrics, read } = start();
    new Counter({ name: 'app_total', help: 'a', registers: [app] });
    new Counter({ name: 'other_total', help: 'o', registers: [other] });
    await metrics.extend(ours);
    metrics.http = new HttpMetrics([1]);
    expect((await read()).map(({ name }) => name)).toEqual([
      'app_total',
      'other_total',
      'ours_total',
      'http_request_duration_seconds',
      'http_response_size_bytes',
      'http_requests_aborted_total',
    ]);
  });

  it.each([client, successor])(
    'have the default ones outside of the registries of the app, and none that is misnamed',
    async (of) => {
      const { app, metrics, read } = start(undefined, of);
      metrics.measureDefaults();
      const all = await read();
      expect(app.getMetricsAsArray()).toEqual([]);
      expect(all.map(({ name }) => name)).toContain('process_cpu_seconds_total');
      expect(all.map(({ name }) => name)).toContain('nodejs_active_handles');
      for (const { name, type } of all) {
        expect([name, name.endsWith('_total')]).toEqual([name, type === 'counter']);
        expect(name).not.toMatch(/_(histogram|summary)$/);
      }
    },
  );

  it('are those of the first registry that has one of a name, and that is told once', async () => {
    const { app, other, metrics, samples, warnings } = start();
    for (const [value, registry] of [app, other].entries()) {
      new Gauge({ name: 'same', help: 's', registers: [registry] }).set(value);
      client.collectDefaultMetrics({ register: registry });
    }
    metrics.measureDefaults();
    await metrics.extend(() => ({ all: [new Counter({ name: 'same', help: 's', registers })] }));
    expect(await samples()).toMatchObject({ 'same{}': 0 });
    await samples();
    expect(warnings).toEqual([
      "The metric same exists twice, and only the app's metric is shown. Rename or remove one of them",
    ]);
  });

  it('are those of the rest if one of our parts cannot create its own', async () => {
    const { metrics, samples, warnings } = start();
    await metrics.extend(ours);
    await metrics.extend(() => Promise.reject(new Error('broken')));
    expect(await samples()).toEqual({ 'ours_total{}': 0 });
    expect(warnings).toEqual(['Some metrics could not be created: Error: broken']);
  });

  it('have the slot on each value if workers are shown separately, and on some always', async () => {
    const queue = new Gauge({ name: 'queue', help: 'q', labelNames: ['worker'], registers });
    queue.set({ worker: 3 }, 7);
    for (const [slot, label] of [
      [3, 'worker="3"'],
      [undefined, ''],
    ] as const) {
      const { metrics, samples } = start(slot);
      await metrics.extend(() => ({ ...ours(), labelled: [queue] }));
      expect(await samples()).toEqual({ [`ours_total{${label}}`]: 0, 'queue{worker="3"}': 7 });
    }
  });

  it('are ours alone if the app has more than 16 MB, and that is told once', async () => {
    const { app, metrics, samples, warnings } = start();
    const labelNames = ['text'];
    new Gauge({ name: 'huge', help: 'h', labelNames, registers: [app] }).set(
      { text: 'x'.repeat(MAX_METRICS_BODY_LENGTH) },
      1,
    );
    await metrics.extend(ours);
    expect(await samples()).toEqual({ 'ours_total{}': 0 });
    await samples();
    expect(warnings).toEqual([
      "The app's metrics are dropped: they exceed 16 MB. Use fewer distinct label values",
    ]);
  });
});

describe('a metric whose collect() does not end well', () => {
  /** Its registry has two metrics, and the other registry one. */
  function withBad() {
    const all = start();
    const bad = { collect: (): void | Promise<void> => {} };
    new Counter({ name: 'good', help: 'g', registers: [all.app] }).inc();
    new Gauge({ name: 'bad', help: 'b', registers: [all.app], collect: () => bad.collect() });
    const other = new Counter({ name: 'other', help: 'o', registers: [all.other] });
    return { ...all, bad, other };
  }

  const throws = () => {
    throw new Error('database is gone');
  };
  const rejects = () => Promise.reject(new Error('database is gone'));

  it.each([throws, rejects])(
    'leaves the last values of its registry, and all of the others: %s',
    async (collect) => {
      const { bad, other, samples, warnings } = withBad();
      bad.collect = collect;
      expect(await samples()).toEqual({ 'other{}': 0 });
      bad.collect = () => {};
      await samples();
      bad.collect = collect;
      other.inc();
      expect(await samples()).toEqual({ 'good{}': 1, 'bad{}': 0, 'other{}': 1 });
      expect(warnings).toEqual([
        'Metrics cannot be read (Error: database is gone); their last values are shown',
      ]);
    },
  );

  it('is waited for no longer than 250 ms', async () => {
    vi.useFakeTimers();
    const { bad, samples, warnings } = withBad();
    await samples();
    bad.collect = () => new Promise<void>(() => {});
    let read: object | undefined;
    void samples().then((given) => (read = given));
    await vi.advanceTimersByTimeAsync(READ_TIMEOUT_MS - 1);
    expect(read).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1);
    expect(read).toEqual({ 'good{}': 1, 'bad{}': 0, 'other{}': 0 });
    expect(warnings).toEqual([
      'Metrics cannot be read (timed out after 250 ms); their last values are shown',
    ]);
    expect(vi.getTimerCount()).toBe(0);
  });
});
