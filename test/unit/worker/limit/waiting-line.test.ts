import { expect, it } from 'vitest';
import { WaitingLine } from '../../../../src/worker/limit/waiting-line.js';

const normal = (since: number) => ({ priority: 'normal', since }) as const;
const sheddable = (since: number) => ({ priority: 'sheddable', since }) as const;

function lineOf(...waiters: (ReturnType<typeof normal> | ReturnType<typeof sheddable>)[]) {
  const line = new WaitingLine();
  for (const each of waiters) expect(line.add(each, Infinity)).toBeUndefined();
  return line;
}

it('gives normal requests first, and each kind in the order in which they came', () => {
  const line = lineOf(sheddable(1), normal(2), sheddable(3), normal(4));
  const order = Array.from({ length: 5 }, () => line.take()?.since);
  expect(order).toEqual([2, 4, 1, 3, undefined]);
});

it('has no place for more than it is told, and gives up its newest sheddable request first', () => {
  const line = lineOf(sheddable(1), sheddable(2));
  expect(line.add(sheddable(3), 2)?.since).toBe(3);
  expect(line.add(normal(4), 2)?.since).toBe(2);
  expect(line.add(normal(5), 2)?.since).toBe(1);
  expect(line.add(normal(6), 2)?.since).toBe(6);
  expect(line.size).toBe(2);
});

it('gives up requests that wait for too long', () => {
  const line = lineOf(normal(1), sheddable(2), normal(3), sheddable(4));
  expect(line.oldest).toBe(1);
  expect(line.takeBefore(3).map(({ since }) => since)).toEqual([1, 2]);
  expect([line.oldest, line.size]).toEqual([3, 2]);
  expect(line.takeBefore(5)).toHaveLength(2);
  expect([line.oldest, line.size]).toEqual([undefined, 0]);
});
