/** Samples of a page in the text format that must never fall: of counters, and what histograms count. */
export function readCounters(page) {
  const counters = new Map();
  const monotonic = new Set();
  for (const line of page.split('\n')) {
    const type = /^# TYPE (\S+) (counter|histogram)$/.exec(line);
    if (type) {
      const suffixes = type[2] === 'counter' ? [''] : ['_bucket', '_count', '_sum'];
      for (const suffix of suffixes) monotonic.add(type[1] + suffix);
    }
    const sample = /^([a-zA-Z_:][\w:]*)(\{.*\})? (\S+)$/.exec(line);
    if (sample && monotonic.has(sample[1])) {
      counters.set(sample[1] + (sample[2] ?? ''), Number(sample[3]));
    }
  }
  return counters;
}

/** Counters that have decreased or disappeared, as `{ series, from, to }`. */
export function fallen(before, after) {
  return [...before]
    .filter(([series, value]) => !(after.get(series) >= value))
    .map(([series, from]) => ({ series, from, to: after.get(series) ?? 'gone' }));
}
