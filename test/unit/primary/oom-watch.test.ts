import { describe, expect, it } from 'vitest';
import { OomWatch } from '../../../src/primary/switchboard.js';

/** A watch over a counter that reads `values`, one after the other. */
function watchOver(...values: (number | undefined)[]): OomWatch {
  return new OomWatch(() => values.shift());
}

describe('a kill for want of memory', () => {
  it.each([4, 9])('has happened where the counter has grown to %d', (value) => {
    expect(watchOver(3, value).hasKilled()).toBe(true);
  });

  it('is told once: the next death is another one', () => {
    const watch = watchOver(0, 1, 1, 2);
    expect([watch.hasKilled(), watch.hasKilled(), watch.hasKilled()]).toEqual([true, false, true]);
  });

  it('is told late where the counter could not be read when it happened', () => {
    const watch = watchOver(3, undefined, 4);
    expect([watch.hasKilled(), watch.hasKilled()]).toEqual([false, true]);
  });

  it('has not happened before the watch began', () => {
    expect(watchOver(7, 7).hasKilled()).toBe(false);
  });

  it.each([
    ['nothing is known', [undefined, undefined]],
    ['nothing was known before', [undefined, 5]],
    ['nothing is known any more', [5, undefined]],
    ['the counter is another one now', [5, 0]],
  ] as const)('has not happened where %s', (_, values) => {
    expect(watchOver(...values).hasKilled()).toBe(false);
  });
});
