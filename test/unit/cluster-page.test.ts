import { describe, expect, it } from 'vitest';
import {
  clusterPage,
  foldBodies,
  mergeBodies,
  mergeForeignBodies,
} from '../../src/exposition/cluster-page.js';
import type { MetricFamily } from '../../src/exposition/metric-family.js';
import { decodeBody, encodeBody } from '../../src/exposition/metrics-body.js';
import { DroppedSamples } from '../../src/exposition/series-limit.js';
import { SNAPSHOT } from './fake-relay.js';
import { counter, family, gauge, samplesOf } from './metric-families.js';

const OWN = { prefix: 'own_', maxSeries: 5 };

const encode = (...families: MetricFamily[]) => encodeBody({ ...OWN, families });

/** What a worker may send that is no body, or not one of metrics. */
const HOSTILE = [
  '',
  'nonsense',
  '{}',
  'null',
  '{"prefix":"","maxSeries":1,"families":[["c"]]}',
  '{"prefix":"","maxSeries":1,"families":[["c",5,"counter","sum",[" "],[""],[1000]]]}',
  '{"prefix":"","maxSeries":1,"families":[["c","h","counter","sum",[" "],["} 1\\nevil 1"],[1000]]]}',
  '{"prefix":"a b","maxSeries":1,"families":[]}',
];

describe('the bodies of several workers', () => {
  it('are merged into one of whoever merges them', () => {
    const merged = mergeBodies(
      [encode(counter(1), gauge(1)), encode(counter(2), gauge(2))],
      [encode(counter(4), gauge(4))],
      { prefix: 'mine_', maxSeries: 7 },
    );
    expect(merged).toMatchObject({ prefix: 'mine_', maxSeries: 7 });
    expect(samplesOf(merged.families)).toEqual({ 'c{}': 7, 'g{}': 3 });
  });

  it.each(HOSTILE)('lose only the one that is none: %s', (hostile) => {
    const good = [encode(counter(1)), encode(counter(2))];
    const whole = samplesOf(mergeBodies(good, good, OWN).families);
    expect(whole).toEqual({ 'c{}': 6 });
    const live = [hostile, ...good, hostile];
    expect(samplesOf(mergeBodies(live, [hostile, ...good], OWN).families)).toEqual(whole);
    const folded = foldBodies([hostile, ...good], OWN, new DroppedSamples(5));
    expect(samplesOf(mergeBodies(good, [folded], OWN).families)).toEqual(whole);
    expect(samplesOf(mergeForeignBodies(live, [hostile, ...good], new Map()).families)).toEqual(
      whole,
    );
  });

  it('have no more series than whoever merges them allows, which counts what it leaves out', () => {
    const series = (...names: string[]) => encode(...names.map((a) => counter(1, { a })));
    const limit = new DroppedSamples(1);
    const { families } = mergeBodies([series('a'), series('b')], [], OWN, limit);
    expect([Object.keys(samplesOf(families)), [...limit.counts]]).toEqual([
      ['c{a="a"}'],
      [['c', 1]],
    ]);
    const all = mergeBodies(
      ['a', 'b', 'c', 'd', 'e', 'f'].map((a) => series(a)),
      [],
      OWN,
    );
    expect(Object.keys(samplesOf(all.families))).toHaveLength(OWN.maxSeries);
  });

  it('are none where nobody has any', () => {
    expect(mergeBodies([], [], OWN)).toEqual({ ...OWN, families: [] });
    expect(mergeBodies(['', ''], [''], OWN)).toEqual({ ...OWN, families: [] });
  });
});

describe('bodies that are folded', () => {
  it('count the same, and have nothing of what is gone with its worker', () => {
    const text = foldBodies(
      [encode(counter(1), gauge(1)), encode(counter(2))],
      OWN,
      new DroppedSamples(5),
    );
    expect(decodeBody(text)).toEqual({ ...OWN, families: [counter(3)] });
  });

  it('keep what is too long for a number', () => {
    const bodies = [2 ** 50, 0.3, 0.3, 0.3, 0.3].map((value) => encode(counter(value)));
    const whole = mergeBodies([encode(counter(0.3))], bodies, OWN);
    const folded = foldBodies(bodies, OWN, new DroppedSamples(5));
    expect(mergeBodies([encode(counter(0.3))], [folded], OWN)).toEqual(whole);
    const twice = foldBodies([folded, encode(counter(0.3))], OWN, new DroppedSamples(5));
    expect(mergeBodies([], [twice], OWN)).toEqual(whole);
  });

  it('of nothing are a body of nothing', () => {
    expect(decodeBody(foldBodies(['', 'x'], OWN, new DroppedSamples(5)))).toEqual({
      ...OWN,
      families: [],
    });
  });
});

describe('one who has no metrics of its own', () => {
  it('merges as the first body says that is one', () => {
    const other = encodeBody({ prefix: 'other_', maxSeries: 1, families: [counter(1)] });
    const own = encode(counter(2));
    expect(mergeForeignBodies(['', 'x', own, other], [], new Map())).toMatchObject(OWN);
    expect(mergeForeignBodies(['', other, own], [], new Map())).toMatchObject({
      prefix: 'other_',
      maxSeries: 1,
    });
    expect(mergeForeignBodies([], [own], new Map())).toMatchObject({ ...OWN });
  });

  it('has an empty page where nobody has any', () => {
    expect(mergeForeignBodies([''], [], new Map())).toMatchObject({
      prefix: '',
      maxSeries: Infinity,
    });
  });
});

describe('the page of the cluster', () => {
  const STATE = { snapshot: SNAPSHOT, ageMs: 0, ages: [], partial: false };
  const page = (families: readonly MetricFamily[], partial = false) =>
    clusterPage({ ...STATE, partial }, { ...OWN, families });

  it('has the metrics of the cluster with the prefix, then those of the workers', () => {
    const { families, conflicts } = page([counter(1), gauge(2)]);
    expect(families.slice(-2)).toEqual([counter(1), gauge(2)]);
    expect(families.length).toBeGreaterThan(20);
    for (const { name } of families.slice(0, -2)) expect(name).toMatch(/^own_nestjs_cluster_/);
    expect(conflicts).toEqual([]);
  });

  it('has the metric of the app where both have one, and says so', () => {
    const name = 'own_nestjs_cluster_workers';
    const apps = family('gauge', name, [[{}, 42]]);
    const { families, conflicts } = page([apps]);
    expect(families.filter((each) => each.name === name)).toEqual([apps]);
    expect(conflicts).toEqual([name]);
  });

  it('has no counter where the primary did not answer: what others counted is not known', () => {
    const { families, conflicts } = page([], true);
    expect(new Set(families.map(({ type }) => type))).toEqual(new Set(['gauge']));
    expect(families.map(({ name }) => name)).toContain('own_nestjs_cluster_snapshot_age_seconds');
    expect(page([]).families.some(({ type }) => type === 'counter')).toBe(true);
    expect(conflicts).toEqual([]);
  });
});
