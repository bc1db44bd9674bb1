import { describe, expect, it } from 'vitest';
import {
  histogramColumns,
  type MetricFamily,
} from '../../../../src/observe/exposition/metric-family.js';
import { decodeBody, encodeBody } from '../../../../src/observe/exposition/metrics-body.js';
import {
  counter,
  family,
  gauge,
  histogram,
  samplesOf,
  summary,
} from '../../support/metric-families.js';

const encode = (...families: MetricFamily[]) => encodeBody(families);
const roundTrip = (...families: MetricFamily[]) => decodeBody(encode(...families));

describe('an encoded body', () => {
  it.each([0, 1, -1, 0.1, 1e300, Number.MAX_SAFE_INTEGER, NaN, Infinity, -Infinity])(
    'decodes to what it was: %d',
    (value) => {
      expect(roundTrip(gauge(value), counter(value))).toEqual([gauge(value), counter(value)]);
    },
  );

  it('decodes without a metric', () => {
    expect(decodeBody(encode())).toEqual([]);
  });

  it('decodes with every field, of every type, and with labels of every sort', () => {
    const families = [
      { ...counter(1), help: 'with "quotes"\\ and\nlines, é', aggregator: 'max' },
      gauge(1, 'average', { path: '/é\u0000"\\\n', value: 'NaN', n: 5 }),
      histogram({ 0.5: 3, '+Inf': 4 }, 5.5, { path: '/' }),
      summary({ 0.5: 1, 0.99: 2 }, 3, 4),
    ];
    expect(roundTrip(...families)).toEqual(families);
  });

  it('keeps the values of many series apart, and those that a series has not', () => {
    const columns = histogramColumns([1, 2]);
    const series = new Map([
      ['a="1"', [1, 2, 3, 4, 5]],
      ['a="2"', [null, 7, null, NaN, 0]],
      ['', [null, null, null, null, null]],
    ]);
    const one: MetricFamily = { ...histogram({ '+Inf': 0 }, 0), columns, series };
    expect(roundTrip(one, gauge(3))).toEqual([one, gauge(3)]);
  });

  it('decodes without series, and without columns', () => {
    const empty = family('counter', 'c', []);
    expect(roundTrip(empty, { ...gauge(1), series: new Map() })).toEqual([
      empty,
      { ...gauge(1), series: new Map() },
    ]);
  });

  it('is one line of text', () => {
    expect(encode({ ...gauge(1), help: 'a\nb' })).not.toContain('\n');
  });

  it('of a worker without metrics is an empty text, which decodes to none', () => {
    expect(decodeBody('')).toBeUndefined();
  });
});

describe('a body that is none', () => {
  const wire = (...families: unknown[]) => JSON.stringify(families);
  const FAMILY = ['c', 'h', 'counter', 'sum', [' '], ['a="x"'], [1]];
  const replaced = (at: number, value: unknown) => wire(FAMILY.with(at, value as never));

  it('is told from one that is: the same with nothing changed decodes', () => {
    expect(samplesOf(decodeBody(wire(FAMILY))!)).toEqual({ 'c{a="x"}': 1 });
  });

  it.each(
    [
      'x',
      '{',
      '{}',
      'null',
      '1',
      '"text"',
      'true',
      '[1]',
      '[null]',
      '[{}]',
      '[[]]',
      '\u0000',
      '[['.repeat(100_000),
    ].map((text) => [text.slice(0, 60), text] as const),
  )('is not decoded: %s', (_, text) => {
    expect(decodeBody(text)).toBeUndefined();
  });

  it.each([
    ['name', 0, ['', 'a b', '1a', 'a\n', 'a{', '\na', 'a-b', 'é', null, 5, {}, ['c'], ['é']]],
    ['help', 1, [null, 5, {}, ['h']]],
    ['type', 2, ['', 'untyped', 'constructor', '__proto__', 'Counter', null, 5, {}]],
    ['aggregator', 3, [null, 5, {}, ['sum']]],
    [
      'columns',
      4,
      [null, 5, 'text', [5], [null], [{}], {}, ['_max '], ['_sum\n '], [' a="1"'], [' le="\n"']],
    ],
    [
      'labels',
      5,
      [
        null,
        5,
        {},
        '',
        [5],
        ['a=x'],
        ['a="x'],
        ['a="x"b="y"'],
        ['a="x",'],
        [',a="x"'],
        ['1a="x"'],
        ['a="x"} 1\nevil 1'],
        ['a="\n"'],
        ['a="""'],
        ['a="\\"'],
        ['a="\\t"'],
        [' a="x"'],
      ],
    ],
    ['values', 6, [null]],
  ])('is not decoded for its %s', (_, at, hostile) => {
    for (const value of hostile) {
      expect([value, decodeBody(replaced(at, value))]).toEqual([value, undefined]);
    }
  });

  it('is lost as a whole for one metric', () => {
    expect(decodeBody(wire(FAMILY, FAMILY.with(2, 'no')))).toBeUndefined();
    expect(decodeBody(wire(FAMILY.with(2, 'no'), FAMILY))).toBeUndefined();
  });

  it.each(['c', 'a:b', '_x', ':x', 'A_1'])('may be called %s', (name) => {
    expect(decodeBody(replaced(0, name))![0]!.name).toBe(name);
  });

  it('has no value where one is missing, and none of those that are too many', () => {
    const few = decodeBody(wire(FAMILY.with(4, [' ', '_sum ']).with(5, ['a="x"', 'a="y"'])));
    expect([...few![0]!.series]).toEqual([
      ['a="x"', [1, null]],
      ['a="y"', [null, null]],
    ]);
    const many = decodeBody(replaced(6, [1, 2, 3]));
    expect([...many![0]!.series]).toEqual([['a="x"', [1]]]);
  });

  it('is decoded while it has values that are no numbers: they are NaN at most', () => {
    expect(samplesOf(decodeBody(replaced(6, ['x']))!)).toEqual({ 'c{a="x"}': NaN });
  });

  it('does not reach the prototypes of anything', () => {
    const { series } = decodeBody(replaced(5, ['__proto__="x"']))![0]!;
    expect([...series.keys()]).toEqual(['__proto__="x"']);
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });
});
