import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  heapArguments,
  type HeapSituation,
  mayBeDebugged,
  workerArguments,
} from '../../../src/primary/worker-arguments.js';
import { temporaryDirectory } from '../../support/temporary-directory.js';

const MIB = 1024 * 1024;

const heapOf = (workers: number, situation: Partial<HeapSituation>) =>
  heapArguments(workers, {
    execArgv: [],
    nodeOptions: undefined,
    memoryBytes: 1_024 * MIB,
    defaultHeapBytes: 4_144 * MIB,
    ...situation,
  });

describe('the heap of a worker', () => {
  it.each<[mib: number, workers: number, v8: number, heap?: number]>([
    [1_024, 1, 4_144, 720],
    [1_024, 4, 4_144, 180],
    // Never above V8's default.
    [4_096, 1, 3_024],
    [4_096, 1, 3_025, 3_024],
    // Never below the heap with which an app starts.
    [128, 1, 4_144, 48],
    [127, 1, 4_144],
    [16, 2, 4_144],
    [Infinity, 64, 4_144],
  ])('in %d MiB with %d workers, and V8 would take %d MiB: %s', (mib, workers, v8, heap) => {
    const situation = { memoryBytes: mib * MIB, defaultHeapBytes: v8 * MIB };
    const expected = heap === undefined ? [] : [`--max-old-space-size=${heap}`];
    expect(heapOf(workers, situation)).toEqual(expected);
  });

  it.each([
    '--max-old-space-size=300',
    '--max_old_space_size=300',
    '--max-old-space-size-percentage=50',
    '--max-heap-size=500',
  ])('is not set if the user has set it: %s', (flag) => {
    expect(heapOf(2, { execArgv: ['--enable-source-maps', flag] })).toEqual([]);
    expect(heapOf(2, { nodeOptions: `--enable-source-maps ${flag}` })).toEqual([]);
  });

  it('is set if the user has set another limit', () => {
    const execArgv = ['--max-semi-space-size=16', '--enable-source-maps'];
    const nodeOptions = '--max-http-header-size=16384';
    expect(heapOf(2, { execArgv, nodeOptions })).toEqual(['--max-old-space-size=360']);
  });
});

it('a worker gets the arguments of the primary, and a preload of its own release', () => {
  const release = temporaryDirectory();
  const installed = join(release, 'node_modules/nestjs-cluster');
  const preload = join(installed, 'dist/programs/early-boot.cjs');
  mkdirSync(dirname(preload), { recursive: true });
  writeFileSync(join(installed, 'package.json'), '{}');
  writeFileSync(preload, '');
  const { execArgv, own } = workerArguments(1, join(release, 'main.js'));
  expect(execArgv.slice(0, 2)).toEqual(['--require', preload]);
  expect(execArgv[own - 1]).toBe('--min-semi-space-size=4');
  expect(execArgv.slice(own)).toEqual(process.execArgv);
});

it.each([
  [['--enable-source-maps'], '--max-old-space-size=300', false],
  [['--inspect=127.0.0.1:9229'], '', true],
  [['--enable-source-maps', '--inspect-wait=0'], '', true],
  [[], '--enable-source-maps --inspect-brk=0', true],
])('a debugger may pause a worker with %j and NODE_OPTIONS=%j: %s', (execArgv, options, may) => {
  expect(mayBeDebugged(execArgv, options)).toBe(may);
});
