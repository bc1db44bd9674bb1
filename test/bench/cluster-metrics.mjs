/** Reads a cluster's counters from its `/metrics`: of each worker, by slot. */
export async function readWorkers(base) {
  // A connection of its own: it must not be one of those that are being balanced.
  const response = await fetch(`${base}/metrics`, { headers: { connection: 'close' } });
  const text = await response.text();
  const read = (name) =>
    new Map(
      [
        ...text.matchAll(new RegExp(`^nestjs_cluster_${name}\\{worker="(\\d+)"\\} (\\S+)`, 'gm')),
      ].map(([, slot, value]) => [Number(slot), Number(value)]),
    );
  return {
    requests: read('worker_requests_total'),
    rebalanced: read('rebalanced_connections_total'),
  };
}

/** The difference of two readings of a counter, for each worker. */
export function between(before, after) {
  return new Map([...after].map(([slot, value]) => [slot, value - (before.get(slot) ?? 0)]));
}

/** The busiest worker's requests over the mean. */
export function busiestToMean(requests) {
  const values = [...requests.values()];
  return Math.max(...values) / (sum(values) / values.length);
}

export function sum(values) {
  return [...values].reduce((total, value) => total + value, 0);
}
