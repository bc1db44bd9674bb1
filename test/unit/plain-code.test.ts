import { describe, expect, it, vi } from 'vitest';
import { resolveOptions } from '../../src/options/index.js';
import type { ClusterOptions } from '../../src/options/index.js';
import { keepCodePlain } from '../../src/primary/plain-code.js';

function flagsSet(options: ClusterOptions = {}, execArgv: string[] = [], nodeOptions = '') {
  const setFlags = vi.fn<(flag: string) => void>();
  keepCodePlain(resolveOptions(options), execArgv, nodeOptions, setFlags);
  return setFlags.mock.calls.flat();
}

describe('the code of the primary', () => {
  it('is left to the interpreter and the baseline compiler', () => {
    expect(flagsSet()).toEqual(['--no-opt', '--no-maglev']);
    expect(flagsSet({}, ['--trace-opt'], '--enable-source-maps')).toHaveLength(2);
  });

  it.each<[string, ClusterOptions]>([
    ['each connection passes through it', { balancing: 'round-robin' }],
    ['a thread of it makes pages of metrics', { admin: { port: 0 } }],
  ])('is optimised where %s', (_why, options) => {
    expect(flagsSet(options)).toEqual([]);
  });

  it.each([
    [['--maglev'], ''],
    [['--no-opt'], ''],
    [[], '--no-warnings --always-turbofan'],
    [[], '--jitless'],
  ])('is what its user has set: %s %s', (execArgv, nodeOptions) => {
    expect(flagsSet({}, execArgv, nodeOptions)).toEqual([]);
  });
});
