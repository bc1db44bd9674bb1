import { describe, expect, it } from 'vitest';
import { type Operation, violationsOf } from '../../support/register-history.js';

const operation =
  (kind: 'read' | 'write') =>
  (value: string | null, begin: number, end: number, unsure?: boolean): Operation => ({
    kind,
    key: 'k',
    begin,
    end,
    value,
    unsure,
  });
const read = operation('read');
const write = operation('write');

describe('a history of one register', () => {
  it.each([
    ['a read of the one before that', [write('a', 0, 1), write('b', 2, 9), read('a', 3, 4)]],
    ['either order of two writes at once', [write('a', 0, 5), write('b', 1, 4), read('a', 6, 7)]],
    [
      'a write that nobody heard of, later',
      [write('a', 0, 1, true), read(null, 2, 3), read('a', 8, 9)],
    ],
    ['a read without an answer', [write('a', 0, 1), read(null, 2, 3, true)]],
  ])('may have %s', (_, history) => {
    expect(violationsOf(history)).toEqual([]);
  });

  it.each([
    ['an old value', [write('a', 0, 1), write('b', 2, 3), read('a', 4, 5)]],
    [
      'an old value after the new one was seen, both writes under way',
      [write('a', 0, 20), write('b', 0, 20), read('a', 1, 2), read('b', 3, 4), read('a', 5, 6)],
    ],
    [
      'a write that ended while another value was seen before and after it',
      [write('a', 0, 1), read('a', 2, 3), write('b', 4, 5), read('a', 6, 7)],
    ],
  ])('may not have %s', (_, history) => {
    expect(violationsOf(history)).not.toEqual([]);
  });
});
