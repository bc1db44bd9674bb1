import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ProcessMeter } from '../../../../src/contract/process/process-meter.js';

let meter: ProcessMeter;
beforeEach(() => (meter = new ProcessMeter()));
afterEach(() => {
  meter.stop();
});

/** Keeps the event loop busy; what it did comes back, so that nothing of it is left out. */
function burn(ms: number): number {
  const end = performance.now() + ms;
  let turns = 0;
  while (performance.now() < end) turns += 1;
  return turns;
}

/** Makes Node's histogram of the event loop delay return these values from now on. */
function delayIs(delay: { readonly count: number; readonly p99Ms: number }): void {
  const histogram = monitorEventLoopDelay();
  const prototype = Object.getPrototypeOf(Object.getPrototypeOf(histogram)) as typeof histogram;
  vi.spyOn(prototype, 'count', 'get').mockImplementation(() => delay.count);
  vi.spyOn(prototype, 'percentile').mockImplementation(() => delay.p99Ms * 1e6);
}

const turn = () => new Promise(setImmediate);

describe('what a process measures of itself', () => {
  it('is memory and CPU time as they are, in the units of their names', () => {
    vi.spyOn(process, 'cpuUsage').mockReturnValue({ user: 1_500_000, system: 250_001 });
    vi.spyOn(process.memoryUsage, 'rss').mockReturnValue(7);
    expect(meter.measure()).toMatchObject({ residentMemoryBytes: 7, cpuSecondsTotal: 1.750_001 });
    expect(meter.peek().heapUsedBytes / process.memoryUsage().heapUsed).toBeCloseTo(1, 1);
    vi.spyOn(process, 'cpuUsage').mockReturnValue({ user: 2_000_000, system: 250_001 });
    expect(meter.peek().cpuSecondsTotal).toBe(2.250_001);
  });

  it('is the share of the interval that the event loop was busy: the next one begins with each', async () => {
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(meter.measure().eventLoopUtilization).toBeLessThan(0.9);
    burn(50);
    await turn();
    const { eventLoopUtilization } = meter.measure();
    expect(eventLoopUtilization).toBeGreaterThan(0.9);
    expect(eventLoopUtilization).toBeLessThanOrEqual(1);
  });

  it('is the delay of the event loop, without the period of the timer that finds it', () => {
    const delay = { count: 0, p99Ms: 0 };
    delayIs(delay);
    const measured = () => meter.measure().eventLoopDelayP99Ms;
    expect(measured()).toBe(0);
    Object.assign(delay, { count: 5, p99Ms: 19.9 });
    expect(measured()).toBe(0);
    delay.p99Ms = 52.345_678;
    expect(measured()).toBe(32.346);
    delay.count = 0;
    expect(measured()).toBe(0);
  });

  it('is the delay of a block as soon as that is over, and of the interval before else', () => {
    const delay = { count: 1, p99Ms: 120 };
    delayIs(delay);
    meter.measure();
    const seen = () => meter.peek().eventLoopDelayP99Ms;
    delay.p99Ms = 30;
    expect(seen()).toBe(100);
    delay.p99Ms = 520;
    expect(seen()).toBe(500);
    delay.p99Ms = 40;
    meter.measure();
    expect(seen()).toBe(20);
  });

  it('is the delay of a block that begins as soon as the interval does', async () => {
    const tick = () => new Promise((resolve) => setTimeout(resolve, 30));
    await tick();
    meter.measure();
    burn(100);
    await tick();
    expect(meter.measure().eventLoopDelayP99Ms).toBeGreaterThan(60);
  });

  it('has the utilization of the last interval if it is only read, and of the start at first', async () => {
    expect(meter.peek().eventLoopUtilization).toBeGreaterThanOrEqual(0);
    const { eventLoopUtilization } = meter.measure();
    burn(30);
    await turn();
    expect(meter.peek()).toMatchObject({ eventLoopUtilization });
    meter.restart();
    expect(meter.peek()).toMatchObject({ eventLoopUtilization: 0, eventLoopDelayP99Ms: 0 });
  });

  it('is the time of garbage collections, in whole microseconds', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const seconds = () => meter.peek().gcSecondsTotal;
    const before = seconds();
    collect();
    await vi.waitUntil(() => seconds() > before, { timeout: 20_000, interval: 5 });
    expect(seconds()).toBeLessThan(20);
    expect(Math.round(seconds() * 1e6) / 1e6).toBe(seconds());
  });
});

it('a measurement that fails is the last known value, or else the peak, so that no heartbeat fails', () => {
  const fail = () => {
    throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' });
  };
  const rss = vi.spyOn(process.memoryUsage, 'rss').mockImplementation(fail);
  vi.spyOn(process, 'resourceUsage').mockReturnValue({ maxRSS: 80_000 } as never);
  expect(meter.measure().residentMemoryBytes).toBe(80_000 * 1024);
  rss.mockReturnValueOnce(7);
  for (const stats of [meter.measure(), meter.measure(), meter.peek()]) {
    expect(stats).toMatchObject({ residentMemoryBytes: 7 });
  }
});
