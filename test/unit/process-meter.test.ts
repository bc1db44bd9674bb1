import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { PrimaryMeter } from '../../src/primary/primary-meter.js';
import { ProcessMeter } from '../../src/process/process-meter.js';
import { RequestTracker } from '../../src/worker/request-tracker.js';
import { WorkerMeter } from '../../src/worker/worker-meter.js';

let meter: ProcessMeter;
beforeEach(() => (meter = new ProcessMeter()));
afterEach(() => {
  meter.stop();
  vi.restoreAllMocks();
});

/** Keeps the event loop busy; what it did comes back, so that nothing of it is left out. */
function burn(ms: number): number {
  const end = performance.now() + ms;
  let turns = 0;
  while (performance.now() < end) turns += 1;
  return turns;
}

const turn = () => new Promise(setImmediate);

describe('what a process measures of itself', () => {
  it('is memory and CPU time as they are, in the units of their names', () => {
    vi.spyOn(process, 'cpuUsage').mockReturnValue({ user: 1_500_000, system: 250_001 });
    vi.spyOn(process, 'memoryUsage').mockReturnValue({ rss: 7, heapUsed: 5 } as never);
    expect(meter.measure()).toMatchObject({
      residentMemoryBytes: 7,
      heapUsedBytes: 5,
      cpuSecondsTotal: 1.750_001,
    });
    vi.spyOn(process, 'cpuUsage').mockReturnValue({ user: 2_000_000, system: 250_001 });
    expect(meter.peek().cpuSecondsTotal).toBe(2.250_001);
  });

  it('is the share of the interval that the event loop was busy: the next one begins with each', async () => {
    await turn();
    meter.measure();
    burn(30);
    await turn();
    const busy = meter.measure().eventLoopUtilization;
    await new Promise((resolve) => setTimeout(resolve, 60));
    const idle = meter.measure().eventLoopUtilization;
    expect(busy).toBeGreaterThan(0);
    expect(busy).toBeLessThanOrEqual(1);
    expect(idle).toBeLessThan(busy);
  });

  it('is that of the last interval where it is only looked at', async () => {
    const { eventLoopUtilization, eventLoopDelayP99Ms } = meter.measure();
    burn(30);
    await turn();
    expect(meter.peek()).toMatchObject({ eventLoopUtilization, eventLoopDelayP99Ms });
  });

  it('is measured by the first look', () => {
    const first = meter.peek();
    expect(first.eventLoopUtilization).toBeGreaterThanOrEqual(0);
    expect(first.eventLoopDelayP99Ms).toBeGreaterThanOrEqual(0);
  });

  it('begins anew: what coming up cost is not in it', async () => {
    burn(30);
    await turn();
    meter.restart();
    expect(meter.peek()).toMatchObject({ eventLoopUtilization: 0, eventLoopDelayP99Ms: 0 });
  });

  it('is the time of garbage collections, which only grows', async () => {
    const before = meter.peek().gcSecondsTotal;
    const kept: unknown[] = [];
    // Until one was, and has been told of.
    await vi.waitUntil(
      () => {
        kept.splice(0);
        for (let i = 0; i < 50_000; i += 1) kept.push({ i, text: `${i}` });
        return meter.peek().gcSecondsTotal > before;
      },
      { timeout: 20_000, interval: 1 },
    );
    const after = meter.peek().gcSecondsTotal;
    expect(after).toBeLessThan(20);
    // Whole microseconds: sums of them over workers are told likewise.
    expect(Math.abs(after * 1e6 - Math.round(after * 1e6))).toBeLessThan(1e-3);
    meter.stop();
    const stopped = meter.peek().gcSecondsTotal;
    for (let i = 0; i < 200_000; i += 1) kept.push({ i });
    await turn();
    expect(meter.peek().gcSecondsTotal).toBe(stopped);
  });
});

describe('the meter of the primary', () => {
  it('says whose it is, and for how long that has been there', () => {
    vi.spyOn(process, 'uptime').mockReturnValue(12.345_678);
    const primary = new PrimaryMeter();
    primary.measure();
    expect(primary.stats()).toEqual({
      pid: process.pid,
      uptimeSeconds: 12.346,
      residentMemoryBytes: expect.any(Number),
      heapUsedBytes: expect.any(Number),
      eventLoopUtilization: expect.any(Number),
      eventLoopDelayP99Ms: expect.any(Number),
      cpuSecondsTotal: expect.any(Number),
      gcSecondsTotal: expect.any(Number),
    });
  });
});

describe('the meter of a worker', () => {
  it('has its process and its traffic', () => {
    const tracker = new RequestTracker();
    tracker.requestsInFlight = 2;
    tracker.requestsTotal = 5;
    tracker.rebalancedConnectionsTotal = 3;
    const worker = new WorkerMeter(tracker);
    const traffic = {
      openConnections: 0,
      requestsInFlight: 2,
      requestsTotal: 5,
      rebalancedConnectionsTotal: 3,
    };
    expect(worker.measure()).toMatchObject({ ...traffic, cpuSecondsTotal: expect.any(Number) });
    tracker.requestsTotal = 6;
    expect(worker.peek()).toMatchObject({ ...traffic, requestsTotal: 6 });
    worker.stop();
  });
});
