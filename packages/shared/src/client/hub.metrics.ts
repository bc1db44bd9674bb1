import type { Metrics, MetricsContribution } from 'nestjs-cluster/extension';
import type { CacheStats } from '../wire/protocol.js';
import type { HubClient } from './hub-client.js';

/** How long a scrape waits for the hub, in ms. */
const STATS_MS = 200;

const CACHE_METRICS = [
  ['cache_bytes', 'Size of a shared cache', 'Gauge', 'bytes'],
  ['cache_entries', 'Values in a shared cache', 'Gauge', 'entries'],
  ['cache_hits_total', 'Hits in a shared cache', 'Counter', 'hits'],
  ['cache_misses_total', 'Misses in a shared cache', 'Counter', 'misses'],
  ['cache_evictions_total', 'Values evicted to make room for others', 'Counter', 'evictions'],
] as const;

/** Metrics of this process's requests to the hub, and of the hub's caches. */
export function hubMetrics(
  slot: number,
  hub: HubClient,
  client: Parameters<MetricsContribution>[0],
): Metrics {
  const named = (name: string, help: string, ...labelNames: string[]) => ({
    name: `nestjs_cluster_${name}`,
    help,
    labelNames,
    registers: [],
  });
  const requests = new client.Counter({
    ...named('hub_requests_total', 'Requests to the hub by outcome', 'request', 'outcome'),
    collect() {
      this.reset();
      for (const [name, count] of hub.outcomes) {
        const [request = '', outcome = ''] = name.split(' ');
        this.inc({ request, outcome }, count);
      }
    },
  });
  const connected = new client.Gauge({
    ...named('hub_connected', '1 while the worker has a connection to the hub', 'worker'),
    collect() {
      this.set({ worker: slot }, hub.open ? 1 : 0);
    },
  });
  let asked: Promise<readonly CacheStats[]> | undefined;
  const askCaches = () =>
    (asked ??= hub
      .ask({ op: 'stats' }, STATS_MS)
      .then(
        ({ header }) => (header.t === 'stats' ? header.caches : []),
        () => [],
      )
      .finally(() => (asked = undefined)));
  const caches = CACHE_METRICS.map(
    ([name, help, kind, key]) =>
      new (client[kind] as typeof client.Counter)({
        ...named(name, help, 'cache'),
        aggregator: 'max', // every worker reports the same caches
        async collect() {
          this.reset();
          for (const each of await askCaches()) this.inc({ cache: each.cache }, each[key]);
        },
      }),
  );
  return { all: [requests, ...caches], labelled: [connected] };
}
