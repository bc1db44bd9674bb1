import * as client from 'prom-client';
import { beforeEach, describe, expect, it } from 'vitest';
import type { MetricsClient } from '../../../../src/contract/snapshot/index.js';
import type { OffloadSnapshot } from '../../../../src/offload/run/runner.interface.js';
import { OffloadMetrics } from '../../../../src/offload/offload.metrics.js';
import { TASK_OUTCOMES } from '../../../../src/offload/task/task.js';
import { TASK } from '../../support/observed-task.js';

const OTHER = { ...TASK, name: 'Cats.weigh', index: 1 };

let snapshot: OffloadSnapshot;
beforeEach(() => {
  snapshot = { threads: 2, running: 1, queueSize: 7 };
});

function start() {
  const metrics = new OffloadMetrics(
    client as unknown as MetricsClient,
    3,
    [TASK, OTHER],
    () => snapshot,
  );
  const registry = new client.Registry();
  for (const metric of [...metrics.all, ...metrics.labelled])
    registry.registerMetric(metric as client.Metric);
  return { metrics, text: () => registry.metrics() };
}

describe('the metrics of @CpuBound() methods', () => {
  it('have a series for each task and outcome from the start: a first event has a rate', async () => {
    const text = await start().text();
    for (const { name } of [TASK, OTHER]) {
      for (const outcome of TASK_OUTCOMES) {
        expect(text).toContain(
          `nestjs_cluster_offload_tasks_total{task="${name}",outcome="${outcome}"} 0`,
        );
      }
    }
    expect(text.match(/tasks_total\{/g)).toHaveLength(2 * TASK_OUTCOMES.length);
  });

  it('count each call by its task and its outcome', async () => {
    const { metrics, text } = start();
    for (const outcome of TASK_OUTCOMES) metrics.ended(TASK, outcome);
    metrics.ended(TASK, 'completed');
    metrics.ended(OTHER, 'rejected');
    const page = await text();
    expect(page).toContain('tasks_total{task="Cats.count",outcome="completed"} 2');
    expect(page).toContain('tasks_total{task="Cats.count",outcome="queue_timeout"} 1');
    expect(page).toContain('tasks_total{task="Cats.weigh",outcome="rejected"} 1');
    expect(page).toContain('tasks_total{task="Cats.weigh",outcome="completed"} 0');
  });

  it('have times in seconds', async () => {
    const { metrics, text } = start();
    metrics.began(TASK, 30);
    metrics.began(TASK, 0);
    metrics.ran(TASK, 1_500);
    const page = await text();
    expect(page).toContain('nestjs_cluster_offload_wait_seconds_sum{task="Cats.count"} 0.03');
    expect(page).toContain('nestjs_cluster_offload_wait_seconds_count{task="Cats.count"} 2');
    expect(page).toContain('wait_seconds_bucket{le="0.025",task="Cats.count"} 1');
    expect(page).toContain('wait_seconds_bucket{le="0.05",task="Cats.count"} 2');
    expect(page).toContain('nestjs_cluster_offload_run_seconds_sum{task="Cats.count"} 1.5');
    expect(page).toContain('run_seconds_bucket{le="60",task="Cats.count"} 1');
  });

  it('show the queue and the threads as they are when they are read, by worker', async () => {
    const { text } = start();
    const first = await text();
    expect(first).toContain('nestjs_cluster_offload_queue_size{worker="3"} 7');
    expect(first).toContain('nestjs_cluster_offload_threads{worker="3"} 2');
    snapshot = { ...snapshot, queueSize: 0, threads: 0 };
    const second = await text();
    expect(second).toContain('nestjs_cluster_offload_queue_size{worker="3"} 0');
    expect(second).toContain('nestjs_cluster_offload_threads{worker="3"} 0');
  });

  it('have these names', async () => {
    const { metrics, text } = start();
    const names = [...(await text()).matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);
    expect(names).toEqual([
      'nestjs_cluster_offload_tasks_total',
      'nestjs_cluster_offload_wait_seconds',
      'nestjs_cluster_offload_run_seconds',
      'nestjs_cluster_offload_queue_size',
      'nestjs_cluster_offload_threads',
    ]);
    expect([metrics.all.length, metrics.labelled.length]).toEqual([3, 2]);
  });
});
