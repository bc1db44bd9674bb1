import { describe, expect, it } from 'vitest';
import type { Class } from '../../../../src/contract/options/module.js';
import { instancesIn, restoreInstances } from '../../../../src/offload/task/instances.js';

class Price {
  constructor(readonly cents: number) {}
  get euros(): number {
    return this.cents / 100;
  }
}

class Order {
  readonly at = new Date(0);
  constructor(readonly prices: readonly Price[]) {}
}

/** A result, as the worker gets it. */
function arrived<T>(result: T, know = (type: Class): Class | undefined => type): T {
  const types: Class[] = [];
  const instances = instancesIn(result, types);
  const copy = structuredClone(result);
  restoreInstances(copy, structuredClone(instances), types.map(know));
  return copy;
}

describe('instances of classes in a result', () => {
  it('keep their class: the result itself, in lists and in fields', () => {
    const page = arrived({ data: [new Order([new Price(150), new Price(2)])], total: 1 });
    expect(page).toEqual({ data: [new Order([new Price(150), new Price(2)])], total: 1 });
    expect(page.data[0]).toBeInstanceOf(Order);
    expect(page.data[0]!.prices[0]!.euros).toBe(1.5);
    expect(arrived(new Price(3)).euros).toBe(0.03);
  });

  it('are plain objects if this process does not know the class', () => {
    const order = arrived(new Order([new Price(1)]), (type) => (type === Order ? undefined : type));
    expect(order).not.toBeInstanceOf(Order);
    expect(order.prices[0]).toBeInstanceOf(Price);
  });

  it('are none in plain data', () => {
    const circle: Record<string, unknown> = {
      list: [1, 'a', null],
      at: new Date(),
      map: new Map(),
    };
    circle['self'] = circle;
    expect(instancesIn([circle, Object.create(null), Buffer.from('a')], [])).toEqual([]);
  });
});
