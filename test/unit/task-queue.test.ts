import { describe, expect, it } from 'vitest';
import { type Queued, TaskQueue } from '../../src/offload/task-queue.js';

class Item implements Queued {
  before: Queued | undefined;
  behind: Queued | undefined;

  constructor(readonly name: number) {}
}

function filled(count: number) {
  const queue = new TaskQueue<Item>();
  const items = Array.from({ length: count }, (_, i) => new Item(i));
  for (const item of items) queue.push(item);
  return { queue, items };
}

/** Who has waited longest leaves. */
function shift(queue: TaskQueue<Item>): Item | undefined {
  const { first } = queue;
  if (first !== undefined) queue.remove(first);
  return first;
}

function drained(queue: TaskQueue<Item>): number[] {
  const names: number[] = [];
  for (let item = shift(queue); item !== undefined; item = shift(queue)) names.push(item.name);
  return names;
}

describe('a queue of calls', () => {
  it('gives the first first', () => {
    const { queue } = filled(4);
    expect(queue.size).toBe(4);
    expect(drained(queue)).toEqual([0, 1, 2, 3]);
    expect(queue.size).toBe(0);
  });

  it('has nobody first where it is empty, or is so again', () => {
    expect([filled(0).queue.first, filled(0).queue.size]).toEqual([undefined, 0]);
    const { queue } = filled(1);
    shift(queue);
    expect([queue.first, queue.size]).toEqual([undefined, 0]);
  });

  it.each([
    ['the first', 0, [1, 2, 3]],
    ['one in the middle', 1, [0, 2, 3]],
    ['the last', 3, [0, 1, 2]],
  ])('lets %s leave', (_, which, rest) => {
    const { queue, items } = filled(4);
    queue.remove(items[which]!);
    expect(queue.size).toBe(3);
    queue.push(new Item(9));
    expect(drained(queue)).toEqual([...rest, 9]);
  });

  it('lets the only one leave', () => {
    const { queue, items } = filled(1);
    queue.remove(items[0]!);
    expect([queue.size, queue.first]).toEqual([0, undefined]);
    queue.push(new Item(9));
    expect(drained(queue)).toEqual([9]);
  });

  it('takes one that has left again, at the end', () => {
    const { queue, items } = filled(3);
    queue.remove(items[0]!);
    queue.push(items[0]!);
    queue.push(shift(queue)!);
    expect(drained(queue)).toEqual([2, 0, 1]);
  });

  it('holds nobody who has left: neither does who has left hold another', () => {
    const { queue, items } = filled(3);
    queue.remove(items[1]!);
    shift(queue);
    expect(items[0]).toMatchObject({ before: undefined, behind: undefined });
    expect(items[1]).toMatchObject({ before: undefined, behind: undefined });
    expect(items[2]).toMatchObject({ before: undefined, behind: undefined });
  });

  it('is as a list would be, whatever is done with it', () => {
    const { queue } = filled(0);
    const list: Item[] = [];
    for (let i = 0; i < 2_000; i += 1) {
      if (i % 5 < 3) {
        const item = new Item(i);
        queue.push(item);
        list.push(item);
      } else if (i % 5 === 3) {
        expect(shift(queue)).toBe(list.shift());
      } else {
        const [left] = list.splice((i * 7) % list.length, 1);
        queue.remove(left!);
      }
      expect(queue.size).toBe(list.length);
    }
    expect(drained(queue)).toEqual(list.map(({ name }) => name));
  });
});
