import * as client from 'prom-client';
import { expect, it } from 'vitest';
import type { MetricsClient } from '../../../src/contract/snapshot/types.js';
import { OffloadMetrics } from '../../../src/offload/offload.metrics.js';
import { TASK_OUTCOMES } from '../../../src/offload/run/runner.interface.js';
import { TASK } from '../support/observed-task.js';

const OTHER = { ...TASK, name: 'Cats.weigh', index: 1 };

function start() {
  const snapshot = { threads: 2, running: 1, queueSize: 7 };
  const prometheus = client as unknown as MetricsClient;
  const metrics = new OffloadMetrics(prometheus, 3, [TASK, OTHER], () => snapshot);
  const registry = new client.Registry();
  for (const metric of [...metrics.all, ...metrics.labelled]) {
    registry.registerMetric(metric as client.Metric);
  }
  return { metrics, snapshot, text: () => registry.metrics() };
}

it('each task and outcome has a series from the start, so that its first event has a rate', async () => {
  const series = (await start().text()).match(/(?<=_tasks_total)\{.*0$/gm);
  expect(series).toEqual(
    [TASK, OTHER].flatMap(({ name }) =>
      TASK_OUTCOMES.map((outcome) => `{task="${name}",outcome="${outcome}"} 0`),
    ),
  );
});

it('calls are counted by task and outcome, and timed in seconds', async () => {
  const { metrics, text } = start();
  metrics.ended(OTHER, 'queue_timeout');
  metrics.began(TASK, 30);
  metrics.began(TASK, 0);
  metrics.ran(TASK, 1_500);
  const page = await text();
  for (const line of [
    'tasks_total{task="Cats.weigh",outcome="queue_timeout"} 1',
    'wait_seconds_sum{task="Cats.count"} 0.03',
    'wait_seconds_bucket{le="0.025",task="Cats.count"} 1',
    'wait_seconds_bucket{le="0.05",task="Cats.count"} 2',
    'run_seconds_sum{task="Cats.count"} 1.5',
    'run_seconds_bucket{le="60",task="Cats.count"} 1',
  ]) {
    expect(page).toContain(`nestjs_cluster_offload_${line}\n`);
  }
});

it('the queue and the threads are read with each scrape, by worker', async () => {
  const { text, snapshot } = start();
  const gauges = async () => (await text()).match(/(?<=_offload_)\S+\{worker="3"\} \d+/gm);
  expect(await gauges()).toEqual(['queue_size{worker="3"} 7', 'threads{worker="3"} 2']);
  Object.assign(snapshot, { threads: 0, queueSize: 1 });
  expect(await gauges()).toEqual(['queue_size{worker="3"} 1', 'threads{worker="3"} 0']);
});
