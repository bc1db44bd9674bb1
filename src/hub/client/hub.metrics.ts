import { Counter, Gauge, type Metric } from 'prom-client';
import type { CacheStats } from '../wire/protocol.js';
import type { HubClient } from './hub-client.js';

/** A scrape does not wait longer for the hub. */
const STATS_MS = 200;

/** What a process asks of the hub, and what the hub holds. */
export function hubMetrics(
  prefix: string,
  slot: number,
  hub: HubClient,
): { readonly all: readonly Metric[]; readonly labelled: readonly Metric[] } {
  const named = (name: string) => `${prefix}nestjs_cluster_${name}`;
  const registers: [] = [];
  /** Counts that are kept elsewhere. */
  const counter = (name: string, help: string, read: () => number): Metric =>
    new Counter({
      name: named(name),
      help,
      registers,
      collect() {
        this.reset();
        this.inc(read());
      },
    });
  const outcome = (name: string) => () => hub.outcomes.get(name) ?? 0;
  let caches: Promise<readonly CacheStats[]> | undefined;
  const askCaches = (): Promise<readonly CacheStats[]> => {
    caches ??= hub
      .ask({ op: 'stats' }, STATS_MS)
      .then(
        ({ header }) => (header.t === 'stats' ? header.caches : []),
        () => [],
      )
      .finally(() => (caches = undefined));
    return caches;
  };
  const ofCaches = (name: string, help: string, read: (cache: CacheStats) => number): Metric =>
    new Gauge({
      name: named(name),
      help,
      labelNames: ['cache'],
      registers,
      // Every worker says the same.
      aggregator: 'max',
      async collect() {
        this.reset();
        for (const each of await askCaches()) this.set({ cache: each.cache }, read(each));
      },
    });
  const requests = new Counter({
    name: named('hub_requests_total'),
    help: 'Requests to the hub, by what was asked and how it ended',
    labelNames: ['request', 'outcome'],
    registers,
    collect() {
      this.reset();
      for (const [name, count] of hub.outcomes) {
        const [request = '', ended = ''] = name.split(' ');
        if (!IN_COUNTERS_OF_THEIR_OWN.has(request)) this.inc({ request, outcome: ended }, count);
      }
    },
  });
  const unanswered = new Counter({
    name: named('throttler_unanswered_total'),
    help: 'Requests that the hub did not count in time, by what became of them',
    labelNames: ['decision'],
    registers,
    collect() {
      this.reset();
      for (const decision of ['local', 'refuse', 'allow']) {
        this.inc({ decision }, hub.outcomes.get(`throttler ${decision}`) ?? 0);
      }
    },
  });
  const connected = new Gauge({
    name: named('hub_connected'),
    help: '1 while the worker has a connection to the hub',
    labelNames: ['worker'],
    registers,
    collect() {
      this.set({ worker: slot }, hub.open ? 1 : 0);
    },
  });
  return {
    all: [
      requests,
      unanswered,
      counter('cache_hits_total', 'Values that the shared cache had', outcome('cache hit')),
      counter('cache_misses_total', 'Values that it had not', outcome('cache miss')),
      counter(
        'cache_evictions_total',
        'Values that had to make room for others',
        outcome('cache evicted'),
      ),
      counter(
        'events_dropped_total',
        'Events that did not reach a worker that read too slowly',
        outcome('events dropped'),
      ),
      ofCaches('cache_bytes', 'Size of a shared cache', ({ bytes }) => bytes),
      ofCaches('cache_entries', 'Values in a shared cache', ({ entries }) => entries),
    ],
    labelled: [connected],
  };
}

const IN_COUNTERS_OF_THEIR_OWN: ReadonlySet<string> = new Set(['throttler', 'cache', 'events']);
