import { describe, expect, it } from 'vitest';
import {
  clusterPage,
  foldBodies,
  foreignClusterPage,
} from '../../../../src/observe/exposition/cluster-page.js';
import type { MetricFamily } from '../../../../src/observe/exposition/metric-family.js';
import { decodeBody, encodeBody } from '../../../../src/observe/exposition/metrics-body.js';
import { SeriesLimit } from '../../../../src/observe/exposition/series-limit.js';
import { SNAPSHOT } from '../../support/fake-relay.js';
import { counter, family, gauge, samplesOf } from '../../support/metric-families.js';

const encode = (...families: MetricFamily[]) => encodeBody(families);

/** Texts from a worker that are not a body, or not a body of metrics. */
const HOSTILE = ['', 'nonsense', '[["c","h","counter","sum",[" "],["} 1\\nevil 1"],[1000]]]'];

const collectedOf = (bodies: readonly string[], retired: readonly string[] = []) => ({
  snapshot: SNAPSHOT,
  workers: bodies.map((body, slot) => ({ slot, ageMs: 0, body })),
  retired,
});

/** The merged counts of all workers, as on a page that a worker makes. */
function merged(
  bodies: readonly string[],
  retired: readonly string[] = [],
  limit = new SeriesLimit(),
): Record<string, number> {
  const { families } = clusterPage(collectedOf(bodies, retired), limit);
  return countsOf(families);
}

/** The same of a page of a process without metrics of its own. */
function mergedForeign(
  bodies: readonly string[],
  retired: readonly string[] = [],
): Record<string, number> {
  return countsOf(foreignClusterPage(collectedOf(bodies, retired), new SeriesLimit()).families);
}

const countsOf = (families: readonly MetricFamily[]) =>
  samplesOf(families.filter(({ name }) => !name.includes('nestjs_cluster_')));

const fold = (bodies: readonly string[]) => foldBodies(bodies, new SeriesLimit());

describe('the bodies of several workers', () => {
  it('are merged with those of workers that are gone', () => {
    const live = [encode(counter(1), gauge(1)), encode(counter(2), gauge(2))];
    expect(merged(live, [encode(counter(4), gauge(4))])).toEqual({ 'c{}': 7, 'g{}': 3 });
  });

  it.each(HOSTILE)('lose only the one that is none: %s', (hostile) => {
    const good = [encode(counter(1)), encode(counter(2))];
    const whole = merged(good, good);
    expect(whole).toEqual({ 'c{}': 6 });
    const live = [hostile, ...good, hostile];
    expect(merged(live, [hostile, ...good])).toEqual(whole);
    expect(merged(good, [fold([hostile, ...good])])).toEqual(whole);
    expect(mergedForeign(live, [hostile, ...good])).toEqual(whole);
  });

  it('have no more series than whoever merges them allows, which counts what it leaves out', () => {
    const series = (...names: string[]) => encode(...names.map((a) => counter(1, { a })));
    const limit = new SeriesLimit(1);
    expect([Object.keys(merged([series('a'), series('b')], [], limit)), [...limit.counts]]).toEqual(
      [['c{a="a"}'], [['c', 1]]],
    );
    const all = ['a', 'b', 'c', 'd', 'e', 'f'].map((a) => series(a));
    expect(Object.keys(merged(all, [], new SeriesLimit(5)))).toHaveLength(5);
  });

  it('are none where nobody has any', () => {
    expect(merged([])).toEqual({});
    expect(merged(['', ''], [''])).toEqual({});
  });
});

describe('bodies that are folded', () => {
  it('count the same, and have nothing of what is gone with its worker', () => {
    const text = fold([encode(counter(1), gauge(1)), encode(counter(2))]);
    expect(decodeBody(text)).toEqual([counter(3)]);
  });

  it('of nothing are a body of nothing', () => {
    expect(decodeBody(fold(['', 'x']))).toEqual([]);
  });
});

describe('the page of a process that has no metrics of its own', () => {
  const series = ['a', 'b'].map((a) => counter(1, { a }));

  it('says from the next one on what was left out', () => {
    const limit = new SeriesLimit(1);
    const collected = collectedOf([encode(...series)]);
    const shown = () =>
      samplesOf(foreignClusterPage(collected, limit).families)[
        'nestjs_cluster_dropped_samples_total{metric="c"}'
      ];
    expect([shown(), shown()]).toEqual([undefined, 1]);
  });

  it('is that of the cluster where nobody has any', () => {
    const { families } = foreignClusterPage(collectedOf(['']), new SeriesLimit());
    expect(families[0]!.name).toMatch(/^nestjs_cluster_/);
    expect(countsOf(families)).toEqual({});
  });
});

describe('the page of the cluster', () => {
  const page = (families: readonly MetricFamily[], snapshotAgeMs?: number) =>
    clusterPage({ ...collectedOf([encode(...families)]), snapshotAgeMs }, new SeriesLimit());

  it('has the metrics of the cluster, then those of the workers', () => {
    const { families, conflicts } = page([counter(1), gauge(2)]);
    expect(families.slice(-2)).toEqual([counter(1), gauge(2)]);
    expect(families.length).toBeGreaterThan(20);
    for (const { name } of families.slice(0, -2)) expect(name).toMatch(/^nestjs_cluster_/);
    expect(conflicts).toEqual([]);
  });

  it('has the metric of the app where both have one, and says so', () => {
    const name = 'nestjs_cluster_workers';
    const apps = family('gauge', name, [[{}, 42]]);
    const { families, conflicts } = page([apps]);
    expect(families.filter((each) => each.name === name)).toEqual([apps]);
    expect(conflicts).toEqual([name]);
  });

  it.each([0, 900])(
    'has no counter where the primary did not answer, %d ms ago',
    (snapshotAgeMs) => {
      const { families, conflicts } = page([], snapshotAgeMs);
      expect(new Set(families.map(({ type }) => type))).toEqual(new Set(['gauge']));
      expect(families.map(({ name }) => name)).toContain('nestjs_cluster_snapshot_age_seconds');
      expect(page([]).families.some(({ type }) => type === 'counter')).toBe(true);
      expect(conflicts).toEqual([]);
    },
  );
});
