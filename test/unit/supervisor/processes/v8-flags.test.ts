import { describe, expect, it, vi } from 'vitest';
import { resolveOptions } from '../../../../src/contract/options/index.js';
import type { ClusterOptions } from '../../../../src/contract/options/index.js';
import {
  keepYoungGenerationSmall,
  leaveTurbofanOut,
} from '../../../../src/supervisor/processes/v8-flags.js';

function flagsSet({
  options = {} as ClusterOptions,
  execArgv = [] as string[],
  nodeOptions = '',
  v8 = '13.6.233.17-node.26',
} = {}) {
  const setFlags = vi.fn<(flag: string) => void>();
  leaveTurbofanOut(resolveOptions(options), { execArgv, nodeOptions, v8, setFlags });
  return setFlags.mock.calls.flat();
}

describe('the code of the primary', () => {
  it('is left to V8’s compilers below the last', () => {
    expect(flagsSet()).toEqual(['--no-opt']);
    expect(flagsSet({ execArgv: ['--trace-opt'], nodeOptions: '--enable-source-maps' })).toEqual([
      '--no-opt',
    ]);
  });

  it('is optimised where there is none between the baseline and the last', () => {
    expect(flagsSet({ v8: '11.3.244.8-node.33' })).toEqual([]);
  });

  it.each<[string, ClusterOptions]>([
    ['each connection passes through it', { balancing: 'round-robin' }],
    ['a thread of it makes pages of metrics', { admin: { port: 0 } }],
  ])('is optimised where %s', (_why, options) => {
    expect(flagsSet({ options })).toEqual([]);
  });

  it.each([
    [['--no-maglev'], ''],
    [['--opt'], ''],
    [[], '--no-warnings --always-turbofan'],
    [[], '--jitless'],
  ])('is what its user has set: %s %s', (execArgv, nodeOptions) => {
    expect(flagsSet({ execArgv, nodeOptions })).toEqual([]);
  });
});

describe('the young generation of the primary', () => {
  it('does not grow', () => {
    const setFlags = vi.fn();
    keepYoungGenerationSmall({
      execArgv: ['--max-old-space-size=64'],
      nodeOptions: '--enable-source-maps',
      v8: '',
      setFlags,
    });
    expect(setFlags.mock.calls).toEqual([['--semi-space-growth-factor=1']]);
  });

  it.each([
    [['--max-semi-space-size=32'], ''],
    [[], '--enable-source-maps --max_semi_space_size=32'],
    [['--min-semi-space-size=4'], ''],
    [['--semi-space-growth-factor=4'], ''],
  ])('is what its user has set: %s %s', (execArgv, nodeOptions) => {
    const setFlags = vi.fn();
    keepYoungGenerationSmall({ execArgv, nodeOptions, v8: '', setFlags });
    expect(setFlags).not.toHaveBeenCalled();
  });
});
