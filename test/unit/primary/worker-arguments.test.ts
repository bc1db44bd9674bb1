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

const argumentsOf = (workers: number, situation: Partial<HeapSituation>) =>
  heapArguments(workers, {
    execArgv: [],
    nodeOptions: undefined,
    memoryBytes: 1_024 * MIB,
    defaultHeapBytes: 4_144 * MIB,
    ...situation,
  });

describe('the heap of a worker where a container limits memory', () => {
  it.each<[mib: number, workers: number, v8: number, heap?: number]>([
    [1_024, 1, 4_144, 720],
    [1_024, 2, 4_144, 360],
    [1_024, 4, 4_144, 180],
    [512, 2, 4_144, 168],
    [512, 3, 4_144, 112],
    [256, 1, 4_144, 144],
    [8_192, 4, 4_144, 1_524],
    // It is never above what V8 would take.
    [4_096, 1, 3_000],
    [4_096, 1, 3_024],
    [4_096, 1, 3_025, 3_024],
    [1e6, 2, 4_144],
    // It is not below what an app needs to start.
    [128, 1, 4_144, 48],
    [127, 1, 4_144],
    [256, 4, 4_144],
    [64, 1, 4_144],
    [16, 2, 4_144],
  ])(
    'of %d MiB, with %d workers where V8 would take %d MiB, is %s MiB',
    (mib, workers, v8, heap) => {
      const situation = { memoryBytes: mib * MIB, defaultHeapBytes: v8 * MIB };
      const expected = heap === undefined ? [] : [`--max-old-space-size=${heap}`];
      expect(argumentsOf(workers, situation)).toEqual(expected);
    },
  );

  it.each([1, 2, 3, 7, 16])('leaves room for the primary and for all of %d workers', (workers) => {
    const [argument] = argumentsOf(workers, { memoryBytes: 4_096 * MIB });
    const heap = Number(argument!.split('=')[1]);
    expect(workers * heap + 64).toBeLessThan(4_096);
  });

  it.each([
    '--max-old-space-size=300',
    '--max_old_space_size=300',
    '--max-old_space-size=300',
    '--max-old-space-size-percentage=50',
    '--max-heap-size=500',
    '--max_heap_size=500',
  ])('is left to whoever has decided by an argument or by NODE_OPTIONS: %s', (flag) => {
    expect(argumentsOf(2, { execArgv: ['--enable-source-maps', flag] })).toEqual([]);
    expect(argumentsOf(2, { nodeOptions: `--enable-source-maps ${flag}` })).toEqual([]);
  });

  it('is not left to who has decided something else', () => {
    const situation = {
      execArgv: ['--max-semi-space-size=16', '--enable-source-maps'],
      nodeOptions: '--max-http-header-size=16384',
    };
    expect(argumentsOf(2, situation)).toEqual(['--max-old-space-size=360']);
  });
});

it('the heap of a worker where nothing limits memory is left to V8', () => {
  expect(argumentsOf(64, { memoryBytes: Infinity })).toEqual([]);
});

describe('the arguments of a worker', () => {
  it('hold those of the primary, in their order', () => {
    const { execArgv, own } = workerArguments(1, process.argv[1]!);
    expect(execArgv.slice(own)).toEqual(process.execArgv);
  });

  it('preload a file of its own release, which its threads load again', () => {
    const release = temporaryDirectory();
    const installed = join(release, 'node_modules/nestjs-cluster');
    const preload = join(installed, 'dist/programs/early-boot.cjs');
    mkdirSync(dirname(preload), { recursive: true });
    writeFileSync(join(installed, 'package.json'), '{}');
    writeFileSync(preload, '');
    expect(workerArguments(1, join(release, 'main.js')).execArgv.slice(0, 2)).toEqual([
      '--require',
      preload,
    ]);
  });
});

describe('a worker may be held up by a debugger', () => {
  it.each([
    [[], '', false],
    [['--enable-source-maps'], '--max-old-space-size=300', false],
    [['--inspect'], '', true],
    [['--inspect=127.0.0.1:9229'], '', true],
    [['--inspect-brk'], '', true],
    [['--enable-source-maps', '--inspect-wait=0'], '', true],
    [[], '--enable-source-maps --inspect-brk=0', true],
  ])('with %j and NODE_OPTIONS=%j: %s', (execArgv, nodeOptions, debugged) => {
    expect(mayBeDebugged(execArgv, nodeOptions)).toBe(debugged);
  });
});
