import { InvalidArgumentError } from 'commander';
import { describe, expect, it } from 'vitest';
import { coresOfOthers } from '../../../../../src/tools/tune/run/machine-load.js';
import { measurementOf } from '../../../../../src/tools/tune/run/measurement.js';
import { sumOf } from '../../../../../src/tools/app/endpoints.js';
import { measurementTable } from '../../../../../src/tools/tune/measurement-table.js';
import { addHeader, routeUrl } from '../../../../../src/tools/cli/arguments.js';
import { measured } from '../../../support/tune-measurements.js';

describe('a measurement', () => {
  it('is the median of its runs, with what they differ by and all that failed', () => {
    const runs = [100, 80, 120].map((rate, index) => measured(1, rate, { failed: index }));

    expect(measurementOf({ workers: 1 }, runs)).toMatchObject({
      requestsPerSecond: 100,
      spreadRatio: 0.2,
      failed: 3,
    });
  });

  it('is the mean of the middle two of an even number', () => {
    const runs = [90, 110].map((rate) => measured(1, rate, { busyCores: undefined }));

    const { requestsPerSecond, busyCores, spreadRatio } = measurementOf({ workers: 1 }, runs);
    expect({ requestsPerSecond, busyCores, spreadRatio }).toEqual({
      requestsPerSecond: 100,
      busyCores: undefined,
      spreadRatio: 0.1,
    });
  });
});

describe('the table', () => {
  it('has each value below its title', () => {
    const [head, row] = measurementTable([measured(2, 1_234.5, { eventLoopUtilization: 0.5 })]);

    expect(row).toHaveLength(head!.length);
    expect(row!.trim().replaceAll(/ +/g, ' ')).toBe('2 1235 10.0 20.0 0 2.00 0.50 1.620 250');
  });

  it('shows threads where the route runs in them, and what is not known as such', () => {
    const [head, row] = measurementTable([measured(1, 9.55, { threads: 2, busyCores: undefined })]);

    expect(head).toMatch(/^workers {2}threads each {2}/);
    expect(row).toMatch(/^ +1 +2 +9\.6 .* - /);
  });
});

describe('the sum of a metric', () => {
  const page = [
    '# TYPE nestjs_cluster_worker_cpu_seconds_total counter',
    'nestjs_cluster_worker_cpu_seconds_total{worker="0"} 1.5',
    'nestjs_cluster_worker_cpu_seconds_total{worker="}1"} 2',
    'nestjs_cluster_primary_cpu_seconds_total 0.25',
  ].join('\n');

  it('is that of all its labels', () => {
    expect(sumOf(page, 'nestjs_cluster_worker_cpu_seconds_total')).toBe(3.5);
    expect(sumOf(page, 'nestjs_cluster_primary_cpu_seconds_total')).toBe(0.25);
  });

  it('is unknown where there is none', () => {
    expect(sumOf(page, 'nestjs_cluster_worker_cpu')).toBeUndefined();
  });
});

describe('the cores of others', () => {
  it('are what neither the app nor the load took, where nothing was left', () => {
    expect(coresOfOthers({ busyCores: 2, idleCores: 0 }, 1)).toBe(1);
    expect(coresOfOthers({ busyCores: 1.5, idleCores: 0.5 }, 1)).toBeUndefined();
    expect(coresOfOthers({ busyCores: 2, idleCores: 0 }, 1.9)).toBeUndefined();
  });
});

describe('the route', () => {
  it('is a path of the default address, or a URL', () => {
    expect(routeUrl('/fib/30?x=1')).toBe('http://127.0.0.1:3000/fib/30?x=1');
    expect(routeUrl('http://127.0.0.1:8080/fib/30')).toBe('http://127.0.0.1:8080/fib/30');
  });

  it('has headers that end where they should', () => {
    expect(addHeader('X-Key: a: b', { accept: '*/*' })).toEqual({ accept: '*/*', 'x-key': 'a: b' });
    for (const text of ['X-Key', ': a', 'X Key: a', 'X-Key: a\r\nX-More: b']) {
      expect(() => addHeader(text, {})).toThrow(InvalidArgumentError);
    }
  });
});
