import { Counter, Gauge, type Metric } from 'prom-client';
import type { LimitReadings } from '../../contract/snapshot/index.js';

/** The metrics of the option `limit`. @param slot the value of the label `worker`. */
export function limitMetrics(
  prefix: string,
  slot: number,
  readings: LimitReadings,
): { readonly all: readonly Metric[]; readonly labelled: readonly Metric[] } {
  const shed = new Counter({
    name: `${prefix}nestjs_cluster_requests_shed_total`,
    help: 'Requests that workers at their limit refused with 503, by priority',
    labelNames: ['priority'],
    registers: [],
    collect() {
      this.reset();
      for (const [priority, count] of Object.entries(readings.shed)) this.inc({ priority }, count);
    },
  });
  const limit = new Gauge({
    name: `${prefix}nestjs_cluster_request_limit`,
    help: 'How many requests the worker handles at once, at most; missing while there is no limit',
    labelNames: ['worker'],
    registers: [],
    collect() {
      this.reset();
      if (readings.limit < Infinity) this.set({ worker: slot }, readings.limit);
    },
  });
  return { all: [shed], labelled: [limit] };
}
