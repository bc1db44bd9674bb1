import { availableParallelism } from 'node:os';
import { describe, expect, it } from 'vitest';
import { availableWorkers } from '../../../../../src/contract/options/check/available-workers.js';

const MIB = 1024 * 1024;

describe('workers: auto', () => {
  it.each([
    [0.25, undefined, 1],
    [0.99999, undefined, 1],
    [1, undefined, 1],
    [1.99999, undefined, 1],
    [2.5, undefined, 2],
    [8, undefined, 8],
    [16, undefined, 8],
    [undefined, undefined, 8],
    [undefined, 16, 1],
    [undefined, 512, 1],
    [undefined, 544, 2],
    [undefined, 1_024, 5],
    [undefined, 4_096, 8],
    [6, 704, 3],
    [2, 704, 2],
  ])('with %s cores and %s MiB is %d on a machine of 8', (cpus, mib, workers) => {
    const memoryBytes = mib === undefined ? undefined : mib * MIB;
    expect(availableWorkers({ cpus, memoryBytes }, 8)).toBe(workers);
  });

  it('is never below 1 and never above the cores, and always whole', () => {
    for (const cpus of [undefined, 0.01, 0.25, 0.999, 1, 1.25, 3.7, 64, 1e9]) {
      for (const memoryBytes of [undefined, 1, 64 * MIB, 191 * MIB, 1e9, 1e15]) {
        for (const cores of [1, 2, 3, 8, 128]) {
          const workers = availableWorkers({ cpus, memoryBytes }, cores);
          expect(Number.isInteger(workers)).toBe(true);
          expect(workers).toBeGreaterThanOrEqual(1);
          expect(workers).toBeLessThanOrEqual(cores);
        }
      }
    }
  });

  it('is a number of cores of the machine that the tests run on', () => {
    const workers = availableWorkers();
    expect(workers).toBeGreaterThanOrEqual(1);
    expect(workers).toBeLessThanOrEqual(availableParallelism());
  });
});
