import { describe, expect, it } from 'vitest';
import { parseOpenMetrics } from './open-metrics.js';

const COUNTER = ['# HELP c h', '# TYPE c counter', 'c_total{a="x"} 1'];
const page = (...lines: string[]) => `${[...lines, '# EOF'].join('\n')}\n`;

describe('the reader of OpenMetrics', () => {
  it('reads a page', () => {
    expect(parseOpenMetrics(page(...COUNTER))).toEqual([
      {
        name: 'c',
        type: 'counter',
        help: 'h',
        samples: [{ name: 'c_total', labels: { a: 'x' }, value: 1 }],
      },
    ]);
  });

  it.each([
    ['nothing', ''],
    ['no # EOF', `${COUNTER.join('\n')}\n`],
    ['no line end after # EOF', page(...COUNTER).trimEnd()],
    ['something after # EOF', `${page(...COUNTER)}\n`],
    ['# EOF twice', page(...COUNTER, '# EOF')],
    ['an empty line', page(...COUNTER, '')],
    ['a comment', page('# a comment', ...COUNTER)],
    ['a counter whose family ends in _total', page('# HELP c_total h', '# TYPE c_total counter')],
    ['a counter whose sample does not', page('# HELP c h', '# TYPE c counter', 'c 1')],
    ['no HELP', page('# TYPE c counter')],
    ['no TYPE', page('# HELP c h', 'c_total 1')],
    ['the HELP of another', page('# HELP d h', '# TYPE c counter')],
    ['an unknown type', page('# HELP c h', '# TYPE c untyped')],
    ['a family twice', page(...COUNTER, ...COUNTER.slice(0, 2))],
    ['a sample twice', page(...COUNTER, COUNTER[2]!)],
    ['a sample of another family', page(...COUNTER, 'd_total 1')],
    ['a sample before its family', page('c_total 1', ...COUNTER)],
    ['a counter below zero', page(...COUNTER, 'c_total -1')],
    ['a counter that is NaN', page(...COUNTER, 'c_total NaN')],
    ['a value that is none', page(...COUNTER, 'c_total Nan')],
    ['a value that is Infinity', page(...COUNTER, 'c_total Infinity')],
    ['no value', page(...COUNTER, 'c_total')],
    ['a label without quotes', page(...COUNTER, 'c_total{b=x} 1')],
    ['a label that is not closed', page(...COUNTER, 'c_total{b="x} 1')],
    ['a label with an unknown escape', page(...COUNTER, 'c_total{b="\\t"} 1')],
    ['a label with an open quote', page(...COUNTER, 'c_total{b="""} 1')],
    ['a label twice', page(...COUNTER, 'c_total{b="1",b="2"} 1')],
    ['a comma at the end', page(...COUNTER, 'c_total{b="1",} 1')],
    ['an unknown escape in the help', page('# HELP c \\t', '# TYPE c counter')],
    ['a bucket without le', page('# HELP h h', '# TYPE h histogram', 'h_bucket 1')],
    ['a sum with le', page('# HELP h h', '# TYPE h histogram', 'h_sum{le="1"} 1')],
    ['a quantile without its label', page('# HELP s s', '# TYPE s summary', 's 1')],
  ])('refuses %s', (_, text) => {
    expect(() => parseOpenMetrics(text)).toThrow();
  });
});
