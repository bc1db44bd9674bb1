import type { Metrics, MetricsContribution } from 'nestjs-cluster/extension';
import type { CacheStats } from '../wire/protocol.js';
import type { HubClient } from './hub-client.js';

/** How long a scrape waits for the hub, at most. */
type MetricsClient = Parameters<MetricsContribution>[0];

function named(name: string, help: string) {
  return { name: `nestjs_cluster_${name}`, help, registers: [] };
}

const STATS_MS = 200;

/** Requests whose outcomes have counters of their own. */
const COUNTED_APART: ReadonlySet<string> = new Set(['throttler', 'cache', 'events']);

/** Counters without a label: name, help, outcome. */
const PLAIN_COUNTERS = [
  ['cache_hits_total', 'Values that the shared cache had', 'cache hit'],
  ['cache_misses_total', 'Values that it had not', 'cache miss'],
  ['cache_evictions_total', 'Values that had to make room for others', 'cache evicted'],
  [
    'events_dropped_total',
    'Events that did not reach a worker that read too slowly',
    'events dropped',
  ],
] as const;

/** Metrics of this process's questions, and of the hub's caches. */
export function hubMetrics(
  slot: number,
  hub: HubClient,
  { Counter, Gauge }: MetricsClient,
): Metrics {
  const plain = PLAIN_COUNTERS.map(
    ([name, help, outcome]) =>
      new Counter({
        ...named(name, help),
        collect() {
          this.reset();
          this.inc(hub.outcomes.get(outcome) ?? 0);
        },
      }),
  );
  const requests = new Counter({
    ...named('hub_requests_total', 'Requests to the hub, by what was asked and how it ended'),
    labelNames: ['request', 'outcome'],
    collect() {
      this.reset();
      for (const [name, count] of hub.outcomes) {
        const [request = '', outcome = ''] = name.split(' ');
        if (!COUNTED_APART.has(request)) this.inc({ request, outcome }, count);
      }
    },
  });
  const unanswered = new Counter({
    ...named(
      'throttler_unanswered_total',
      'Requests that the hub did not count in time, by what became of them',
    ),
    labelNames: ['decision'],
    collect() {
      this.reset();
      for (const decision of ['local', 'refuse', 'allow']) {
        this.inc({ decision }, hub.outcomes.get(`throttler ${decision}`) ?? 0);
      }
    },
  });
  const connected = new Gauge({
    ...named('hub_connected', '1 while the worker has a connection to the hub'),
    labelNames: ['worker'],
    collect() {
      this.set({ worker: slot }, hub.open ? 1 : 0);
    },
  });
  return {
    all: [requests, unanswered, ...plain, ...cacheGauges(hub, Gauge)],
    labelled: [connected],
  };
}

/** Every worker reports the same caches, so the aggregator is `max`. */
function cacheGauges(hub: HubClient, Gauge: MetricsClient['Gauge']): readonly object[] {
  let asked: Promise<readonly CacheStats[]> | undefined;
  const askCaches = () =>
    (asked ??= hub
      .ask({ op: 'stats' }, STATS_MS)
      .then(
        ({ header }) => (header.t === 'stats' ? header.caches : []),
        () => [],
      )
      .finally(() => (asked = undefined)));
  const gauge = (name: string, help: string, read: (cache: CacheStats) => number) =>
    new Gauge({
      ...named(name, help),
      labelNames: ['cache'],
      aggregator: 'max',
      async collect() {
        this.reset();
        for (const each of await askCaches()) this.set({ cache: each.cache }, read(each));
      },
    });
  return [
    gauge('cache_bytes', 'Size of a shared cache', ({ bytes }) => bytes),
    gauge('cache_entries', 'Values in a shared cache', ({ entries }) => entries),
  ];
}
