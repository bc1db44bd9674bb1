import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  heapArguments,
  type HeapSituation,
  mayBeDebugged,
  workerArguments,
} from '../../../../src/supervisor/processes/worker-arguments.js';
import { temporaryDirectory } from '../../../support/temporary-directory.js';

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
  it.each([
    [1_024, 1, 720],
    [1_024, 2, 360],
    [1_024, 4, 180],
    [512, 2, 168],
    [512, 3, 112],
    [256, 1, 144],
    [8_192, 4, 1_524],
  ])('of %d MiB with %d workers is %d MiB', (mib, workers, heap) => {
    expect(argumentsOf(workers, { memoryBytes: mib * MIB })).toEqual([
      `--max-old-space-size=${heap}`,
    ]);
  });

  it.each([1, 2, 3, 7, 16])('leaves room for the primary and for all of %d workers', (workers) => {
    const [argument] = argumentsOf(workers, { memoryBytes: 4_096 * MIB });
    const heap = Number(argument!.split('=')[1]);
    expect(workers * heap + 64).toBeLessThan(4_096);
  });

  it.each([
    [4_096, 1, 3_000],
    [4_096, 1, 3_024],
    [1e6, 2, 4_144],
  ])(
    'of %d MiB with %d workers is never above the %d MiB that V8 would take',
    (mib, workers, v8) => {
      const situation = { memoryBytes: mib * MIB, defaultHeapBytes: v8 * MIB };
      expect(argumentsOf(workers, situation)).toEqual([]);
    },
  );

  it('is set as soon as V8 would take more', () => {
    const situation = { memoryBytes: 4_096 * MIB, defaultHeapBytes: 3_025 * MIB };
    expect(argumentsOf(1, situation)).toEqual(['--max-old-space-size=3024']);
  });

  it.each([
    [128, 1, ['--max-old-space-size=48']],
    [127, 1, []],
    [256, 4, []],
    [64, 1, []],
    [16, 2, []],
  ])('of %d MiB with %d workers is not below what an app needs to start', (mib, workers, args) => {
    expect(argumentsOf(workers, { memoryBytes: mib * MIB })).toEqual(args);
  });

  const FLAGS = [
    '--max-old-space-size=300',
    '--max_old_space_size=300',
    '--max-old_space-size=300',
    '--max-old-space-size-percentage=50',
    '--max-heap-size=500',
    '--max_heap_size=500',
  ];

  it.each(FLAGS)('is left to whoever has decided by an argument: %s', (flag) => {
    expect(argumentsOf(2, { execArgv: ['--enable-source-maps', flag] })).toEqual([]);
  });

  it.each(FLAGS)('is left to whoever has decided by NODE_OPTIONS: %s', (flag) => {
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

describe('the heap of a worker where nothing limits memory', () => {
  it('is left to V8', () => {
    expect(argumentsOf(64, { memoryBytes: undefined })).toEqual([]);
  });
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
