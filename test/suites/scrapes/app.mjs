// Metrics of an app with everything that makes an exposition hard: every type and aggregator, and
// labels that need escapes. Timers count all the time, and some series exist in one worker only.
import { clusterCache } from 'nestjs-cluster/cache';
import { Counter, Gauge, Histogram, Summary } from 'prom-client';

export function setup({ slot }) {
  const labels = ['a "quoted" name', 'back\\slash', 'two\nlines', 'naïve ☃', '', '{},="#'];
  const help = 'Help with a \\ and\na second line "quoted"';
  const labelNames = ['colour', 'size'];
  const cats = new Counter({ name: 'cats_total', help, labelNames });
  const times = new Histogram({ name: 'cat_seconds', help, labelNames, buckets: [0.1, 1, 10] });
  const bytes = new Summary({ name: 'cat_bytes', help, labelNames, percentiles: [0.5, 0.99] });
  for (const aggregator of ['sum', 'min', 'max', 'average', 'first', 'omit']) {
    new Gauge({ name: `${aggregator}_of_cats`, help: aggregator, aggregator }).set(slot - 0.5);
  }
  const odd = new Gauge({ name: 'cat_odd', help, labelNames });
  odd.set({ colour: 'none', size: 'nan' }, Number.NaN);
  odd.set({ colour: 'none', size: 'tiny' }, 1e-300);
  odd.set({ colour: 'none', size: 'huge' }, slot === 0 ? Infinity : 1e300);
  new Counter({ name: 'never_counted_total', help: 'No series', labelNames });
  const cache = clusterCache(); // with its use, the hub begins, and has metrics
  let turns = 0;
  setInterval(() => {
    const colour = labels[(turns += 1) % labels.length];
    const size = String(turns % (slot + 2));
    cats.inc({ colour, size }, Math.random());
    times.observe({ colour, size }, Math.random() * 12);
    bytes.observe({ colour, size }, Math.random() * 1e6);
    void cache.set(colour, size).catch(() => {});
  }, 5).unref();
  return {};
}
