import { afterEach, describe, expect, it, vi } from 'vitest';
import { Stopwatch } from '../../../../src/offload/task/stopwatch.js';

afterEach(() => vi.restoreAllMocks());

/** A stopwatch in a process whose clocks are set by the test, in ms. */
function start() {
  const clocks = { now: 100, cpu: 50 };
  vi.spyOn(performance, 'now').mockImplementation(() => clocks.now);
  const read = vi.spyOn(process, 'cpuUsage').mockImplementation((since) => ({
    user: clocks.cpu * 1_000 - (since?.user ?? 0),
    system: 0,
  }));
  return { clocks, read, stopwatch: new Stopwatch() };
}

describe('a stopwatch', () => {
  it('tells the CPU time of a long piece of work from its time', () => {
    const { clocks, stopwatch } = start();
    const elapsed = stopwatch.start();
    clocks.now += 60;
    clocks.cpu += 7;
    expect(elapsed()).toEqual({ ms: 60, cpuMs: 7 });
  });

  it('never tells more CPU time than time, although other threads compute too', () => {
    const { clocks, stopwatch } = start();
    const elapsed = stopwatch.start();
    clocks.now += 60;
    clocks.cpu += 90;
    expect(elapsed()).toEqual({ ms: 60, cpuMs: 60 });
  });

  it('reads the CPU time once a millisecond at most', () => {
    const { clocks, read, stopwatch } = start();
    for (let call = 0; call < 200; call += 1) {
      const elapsed = stopwatch.start();
      clocks.now += 0.01;
      expect(elapsed().ms).toBeCloseTo(0.01);
    }
    expect(read.mock.calls.length).toBeLessThanOrEqual(2);
  });
});
