import { describe, expect, it, vi } from 'vitest';
import { keepYoungGenerationSmall } from '../../../../src/supervisor/processes/small-heap.js';

describe('the young generation of the primary', () => {
  it('does not grow', () => {
    const setFlags = vi.fn();
    keepYoungGenerationSmall(['--max-old-space-size=64'], '--enable-source-maps', setFlags);
    expect(setFlags.mock.calls).toEqual([['--semi-space-growth-factor=1']]);
  });

  it.each([
    [['--max-semi-space-size=32'], ''],
    [[], '--enable-source-maps --max_semi_space_size=32'],
    [['--min-semi-space-size=4'], ''],
    [['--semi-space-growth-factor=4'], ''],
  ])('is what its user has set: %s %s', (execArgv, nodeOptions) => {
    const setFlags = vi.fn();
    keepYoungGenerationSmall(execArgv, nodeOptions, setFlags);
    expect(setFlags).not.toHaveBeenCalled();
  });
});
