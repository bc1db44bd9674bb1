import { afterEach, describe, expect, it, vi } from 'vitest';
import { CpuClock } from '../../../../src/offload/thread/cpu-clock.js';

afterEach(() => vi.unstubAllGlobals());

const MOST_MS = 10_000;

function compute(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

function wait(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** As on a Node with or without `threadCpuUsage()`. */
function withUsage(threadCpuUsage: (() => NodeJS.CpuUsage) | undefined): void {
  vi.stubGlobal('process', Object.assign(Object.create(process), { threadCpuUsage }));
}

describe('the CPU clock of a thread', () => {
  it.skipIf(process.platform !== 'linux')('counts computing, not waiting, on any Node', () => {
    withUsage(undefined);
    const clock = CpuClock.ofThread()!;

    wait(200);
    const waitedMs = clock.lapMs();
    expect(waitedMs).toBeLessThan(50);

    // A part of the time may go to other processes.
    const began = performance.now();
    let computedMs = 0;
    while (computedMs < 100 && performance.now() - began < MOST_MS) {
      compute(20);
      wait(1);
      computedMs += clock.lapMs();
    }
    expect(computedMs).toBeGreaterThanOrEqual(100);
    expect(computedMs).toBeLessThan(performance.now() - began + 10);
  });

  it('asks Node where Node knows, and begins each lap at the end of the one before', () => {
    const readings = [
      { user: 5_000, system: 1_000 },
      { user: 7_000, system: 1_500 },
      { user: 7_000, system: 2_000 },
    ];
    withUsage(() => readings.shift()!);
    const clock = CpuClock.ofThread()!;

    expect([clock.lapMs(), clock.lapMs()]).toEqual([2.5, 0.5]);
  });
});
