import { describe, expect, it } from 'vitest';
import { MetricsSource, metricsUrlOf } from '../../../../src/tools/dashboard/metrics-source.js';
import type { PublishedOptions } from '../../../../src/control/cluster-status.js';

const URL = 'http://127.0.0.1:3000/metrics';

/** A page on which the routes have so many requests up to 0.1 s, 1 s, and in all. */
function page(routes: Readonly<Record<string, readonly [number, number, number]>>, more = '') {
  const lines = Object.entries(routes).flatMap(([route, counts]) =>
    ['0.1', '1', '+Inf'].map(
      (le, i) =>
        `http_request_duration_seconds_bucket{method="GET",route="${route}",le="${le}"} ${counts[i]}`,
    ),
  );
  return `# HELP x\n${lines.join('\n')}\nhttp_request_duration_seconds_sum{route="/"} 1\n${more}`;
}

/** A source that gets these pages, 5 s apart. */
function sourceOf(...pages: (string | number | Error)[]) {
  let at = 0;
  const ask = async () => {
    const next = pages.shift()!;
    if (next instanceof Error) throw next;
    at += 5_000;
    return typeof next === 'number'
      ? new Response('', { status: next })
      : new Response(next, { status: 200 });
  };
  return new MetricsSource(
    () => URL,
    ask,
    () => at,
  );
}

describe('the latency on the dashboard', () => {
  it('is that of the requests since the page before, of all routes but its own', async () => {
    const source = sourceOf(
      page({ '/a': [1_000, 1_000, 1_000], '/metrics': [1, 1, 1] }),
      page({ '/a': [1_050, 1_080, 1_080], '/b': [0, 20, 20], '/metrics': [1, 1, 9_999] }),
    );
    await source.read();
    expect(source.readings.p50Ms).toBeNull();
    await source.read();

    // 50 of 100 within 0.1 s, all within 1 s: linear within a bucket, as Prometheus has it.
    expect(source.readings.p50Ms).toBeCloseTo(100);
    expect(source.readings.p95Ms).toBeCloseTo(100 + 900 * 0.9);
    expect(source.state).toEqual({ url: URL, problem: null });
  });

  it('is not known where there was no request, and where the counts begin anew', async () => {
    const source = sourceOf(
      page({ '/': [9, 9, 9] }),
      page({ '/': [9, 9, 9] }),
      page({ '/': [1, 1, 1] }),
    );
    await source.read();
    await source.read();
    expect(source.readings.p99Ms).toBeNull();
    await source.read();
    expect(source.readings.p99Ms).toBeNull();
  });

  it('is at least the last bound where a request took longer', async () => {
    const source = sourceOf(page({ '/': [0, 0, 0] }), page({ '/': [0, 0, 10] }));
    await source.read();
    await source.read();

    expect(source.readings.p50Ms).toBe(1_000);
  });

  it('comes with the offloaded calls', async () => {
    const offload = (ended: number) =>
      `nestjs_cluster_offload_queue_size{worker="0"} 3\nnestjs_cluster_offload_queue_size{worker="1"} 4\n` +
      `nestjs_cluster_offload_tasks_total{task="a",outcome="ok"} ${ended}\n`;
    const source = sourceOf(
      page({ '/': [1, 1, 1] }, offload(10)),
      page({ '/': [1, 1, 1] }, offload(60)),
    );
    await source.read();
    await source.read();

    expect(source.readings).toMatchObject({ queued: 7, offloaded: 10 });
  });

  it.each([
    ['answers 404', 404],
    ['does not answer', new Error('refused')],
    ['has no http_request_duration_seconds', 'up 1\n'],
  ])('is not invented: the page of metrics %s', async (problem, answer) => {
    const source = sourceOf(answer);
    await source.read();

    expect(source.readings.p99Ms).toBeNull();
    expect(source.state.problem).toContain(problem);
  });
});

describe('where the metrics are', () => {
  const options = (more: object) =>
    ({ port: 3000, host: null, admin: null, ...more }) as unknown as PublishedOptions;

  it.each([
    ['the app', {}, 'http://127.0.0.1:3000/metrics'],
    ['the app, on an address of its own', { host: '::1' }, 'http://[::1]:3000/metrics'],
    [
      'the admin listener',
      { admin: { port: 9000, host: '0.0.0.0' } },
      'http://127.0.0.1:9000/metrics',
    ],
    ['unknown: a port that was free', { port: 0 }, undefined],
    ['unknown: a unix socket', { port: undefined, path: '/run/app.sock' }, undefined],
  ])('is %s', (_, more, url) => {
    expect(metricsUrlOf(options(more))).toBe(url);
  });
});
