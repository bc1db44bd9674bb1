import * as client from 'prom-client';
import { expect, it } from 'vitest';
import type { MetricsClient } from '../../../../src/contract/snapshot/index.js';
import { OffloadMetrics } from '../../../../src/offload/offload.metrics.js';
import {
  type OffloadSnapshot,
  TASK_OUTCOMES,
} from '../../../../src/offload/run/runner.interface.js';
import { TASK } from '../../support/observed-task.js';

const OTHER = { ...TASK, name: 'Cats.weigh', index: 1 };

function start() {
  let snapshot: OffloadSnapshot = { threads: 2, running: 1, queueSize: 7 };
  const prometheus = client as unknown as MetricsClient;
  const metrics = new OffloadMetrics(prometheus, 3, [TASK, OTHER], () => snapshot);
  const registry = new client.Registry();
  for (const metric of [...metrics.all, ...metrics.labelled]) {
    registry.registerMetric(metric as client.Metric);
  }
  return {
    metrics,
    text: () => registry.metrics(),
    become: (next: OffloadSnapshot) => void (snapshot = next),
  };
}

it('each task and outcome has a series from the start, so that its first event has a rate', async () => {
  const text = await start().text();
  for (const { name } of [TASK, OTHER]) {
    for (const outcome of TASK_OUTCOMES) {
      expect(text).toContain(`_offload_tasks_total{task="${name}",outcome="${outcome}"} 0`);
    }
  }
  expect(text.match(/tasks_total\{/g)).toHaveLength(2 * TASK_OUTCOMES.length);
});

it('calls are counted by task and outcome, and timed in seconds', async () => {
  const { metrics, text } = start();
  metrics.ended(TASK, 'completed');
  metrics.ended(TASK, 'completed');
  metrics.ended(OTHER, 'queue_timeout');
  metrics.began(TASK, 30);
  metrics.began(TASK, 0);
  metrics.ran(TASK, 1_500);
  const page = await text();
  for (const line of [
    'tasks_total{task="Cats.count",outcome="completed"} 2',
    'tasks_total{task="Cats.weigh",outcome="queue_timeout"} 1',
    'tasks_total{task="Cats.weigh",outcome="completed"} 0',
    'wait_seconds_sum{task="Cats.count"} 0.03',
    'wait_seconds_count{task="Cats.count"} 2',
    'wait_seconds_bucket{le="0.025",task="Cats.count"} 1',
    'wait_seconds_bucket{le="0.05",task="Cats.count"} 2',
    'run_seconds_sum{task="Cats.count"} 1.5',
    'run_seconds_bucket{le="60",task="Cats.count"} 1',
  ]) {
    expect(page).toContain(`nestjs_cluster_offload_${line}\n`);
  }
});

it('the queue and the threads are read with each scrape, by worker', async () => {
  const { text, become } = start();
  const gauges = async () => (await text()).match(/^\S+\{worker="3"\} \d+/gm);
  expect(await gauges()).toEqual([
    'nestjs_cluster_offload_queue_size{worker="3"} 7',
    'nestjs_cluster_offload_threads{worker="3"} 2',
  ]);
  become({ threads: 0, running: 0, queueSize: 0 });
  expect(await gauges()).toEqual([
    'nestjs_cluster_offload_queue_size{worker="3"} 0',
    'nestjs_cluster_offload_threads{worker="3"} 0',
  ]);
});
