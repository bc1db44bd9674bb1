import { describe, expect, it } from 'vitest';
import { resolveCpuBoundOptions } from '../../../../src/contract/options/module.js';
import { refusal as refusalOf } from '../../support/refusal.js';

const MAX_TIMER_MS = 2 ** 31 - 1;

const refusal = (options: unknown) =>
  refusalOf(() => resolveCpuBoundOptions(options, 'Cats.count()'));

describe('options of @CpuBound()', () => {
  it.each([
    {},
    { name: undefined, timeoutMs: undefined },
    { name: 'cats' },
    { name: 'a_B.9:-' },
    { name: 'x'.repeat(100) },
    { timeoutMs: 1 },
    { timeoutMs: MAX_TIMER_MS },
    { abortOnDisconnect: true },
    { abortOnDisconnect: false },
  ])('may be %j', (options) => {
    expect(resolveCpuBoundOptions(options, 'Cats.count()')).toEqual(options);
  });

  it.each([
    [
      'name',
      "1 to 100 letters, digits and '_', '.', ':' or '-'",
      ['', 'a b', 'é', 'a\n', 'a"', 'x'.repeat(101), 5, null],
    ],
    [
      'timeoutMs',
      `a number of milliseconds from 1 to ${MAX_TIMER_MS}`,
      [0, -1, NaN, Infinity, MAX_TIMER_MS + 1, '5', null],
    ],
    ['abortOnDisconnect', 'true or false', [1, 'yes', null]],
  ])('refuse %s that is not %s', (key, expected, values) => {
    for (const value of values) {
      const message = refusal({ [key]: value });
      expect(message).toContain('options of @CpuBound() on Cats.count()');
      expect(message).toContain(`${key}: `);
      expect(message).toContain(expected);
    }
  });

  it('refuse an unknown key with those that are known', () => {
    expect(refusal({ timeout: 5 })).toMatch(
      /timeout: .*known are name, timeoutMs, abortOnDisconnect/,
    );
  });

  it.each([[null], ['cats'], [5], [[]]])('are refused as %j', (options) => {
    expect(refusal(options)).toContain('is not allowed; expected an object');
  });
});
