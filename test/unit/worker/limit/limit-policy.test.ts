import { describe, expect, it } from 'vitest';
import { nextLimit, UNLIMITED } from '../../../../src/worker/limit/limit-policy.js';
import { LoopWorld, type Phase, type SimulatedRoute } from './loop-world.js';

const SEEDS = [1, 2, 3];

/** 100 a second are the capacity of each of these routes. */
const CPU: SimulatedRoute = { cpuMs: 10, waitMs: 0 };
const QUERY: SimulatedRoute = { cpuMs: 10, waitMs: 300, slices: 3 };
const QUERIES: SimulatedRoute = { cpuMs: 10, waitMs: 300, slices: 10 };
const CAPACITY = 100;

function phase(seconds: number, ...load: Phase['load']): Phase {
  return { seconds, load };
}
const at = (route: SimulatedRoute, perSecond: number) => ({ ...route, perSecond });

function worldAfter(seed: number, ...phases: Phase[]): LoopWorld {
  const world = new LoopWorld(seed);
  for (const each of phases) world.run(each);
  return world;
}

describe.each(SEEDS)('a simulated event loop with a limit, seed %i', (seed) => {
  it.each([
    ['a route that only computes', CPU, 10],
    ['a route that waits, in 3 slices', QUERY, 310],
    ['a route that waits, in 10 slices', QUERIES, 310],
  ])('answers 0.94 of its capacity at three times that: %s', (_, route, idleMs) => {
    const { answered, p99Ms } = worldAfter(seed, phase(60, at(route, 3 * CAPACITY))).last(30);
    expect(answered).toBeGreaterThan(0.94 * CAPACITY);
    // One slice more, because the request that runs is not interrupted.
    expect(p99Ms).toBeLessThan(3 * idleMs + 10);
  });

  it('is there within seconds where requests take turns on the event loop', () => {
    const turns = { cpuMs: 10, waitMs: 0, slices: 10 };
    const world = worldAfter(seed, phase(20, at(turns, 50)), phase(15, at(turns, 300)));
    expect(world.last(10).answered).toBeGreaterThan(0.94 * CAPACITY);
    expect(world.last(10).p99Ms).toBeLessThan(50);
  });

  it('has ever longer latencies without a limit', () => {
    const world = new LoopWorld(seed, false);
    world.run(phase(10, at(CPU, 3 * CAPACITY)));
    expect(world.last(5).p99Ms).toBeGreaterThan(5_000);
  });

  it('refuses nothing of a route that only waits, however many are waiting', () => {
    const wait = { cpuMs: 0.1, waitMs: 2_000 };
    const { shed, p99Ms } = worldAfter(seed, phase(30, at(wait, 1_000))).last(30);
    expect([shed, Math.round(p99Ms / 100)]).toEqual([0, 20]);
  });

  it('refuses nothing at 0.8 of its capacity, and little at 0.9', () => {
    const [busy, busier] = [0.8, 0.9].map((share) =>
      worldAfter(seed, phase(60, at(QUERY, share * CAPACITY))).last(60),
    );
    expect(busy!.shed).toBe(0);
    expect(busier!.shed).toBeLessThan(0.05 * CAPACITY);
  });

  it('serves fast and slow routes together', () => {
    const [fast, slow] = [
      { cpuMs: 1, waitMs: 0 },
      { cpuMs: 1, waitMs: 300, slices: 3 },
    ];
    const world = worldAfter(seed, phase(60, at(fast, 1_500), at(slow, 1_500)));
    // 2 000 refusals take 0.1 s of each second.
    expect(world.last(20).answered).toBeGreaterThan(0.85 * 1_000);
    expect(world.last(20).p99Ms).toBeLessThan(3 * 301);
  });

  it('follows a change of the routes that are asked for, there and back', () => {
    const fast = { cpuMs: 10, waitMs: 0, slices: 3 };
    const world = worldAfter(seed, phase(20, at(QUERY, 300)), phase(60, at(fast, 300)));
    expect(world.last(30).answered).toBeGreaterThan(0.94 * CAPACITY);
    expect(world.last(30).p99Ms).toBeLessThan(50);
    world.run(phase(30, at(QUERY, 300)));
    expect(world.last(20).answered).toBeGreaterThan(0.94 * CAPACITY);
  });

  it('follows a database that gets slower under overload', () => {
    const slower = { ...QUERY, waitMs: 600 };
    const world = worldAfter(seed, phase(20, at(QUERY, 300)), phase(60, at(slower, 300)));
    expect(world.last(30).answered).toBeGreaterThan(0.93 * CAPACITY);
    expect(world.last(30).p99Ms).toBeLessThan(3 * 610);
  });

  it('refuses nothing while a database slowly gets ten times slower', () => {
    const world = new LoopWorld(seed);
    let shed = 0;
    for (let waitMs = 300; waitMs < 3_000; waitMs *= 1.1) {
      world.run(phase(5, at({ ...QUERY, waitMs }, 50)));
      shed += world.last(5).shed;
    }
    expect(shed).toBe(0);
  });

  it('answers all of a burst', () => {
    const quick = { cpuMs: 1, waitMs: 0 };
    const world = worldAfter(
      seed,
      phase(5, at(quick, 300)),
      phase(0.3, at(quick, 2_000)),
      phase(5, at(quick, 300)),
    );
    expect(world.last(10).shed).toBe(0);
  });

  it('forgets an overload in a quiet night', () => {
    const world = worldAfter(seed, phase(20, at(QUERY, 300)));
    expect(world.state.limit).toBeLessThan(50);
    world.run(phase(30, at(QUERY, 0.1)));
    expect(world.state.limit).toBe(Infinity);
    world.run(phase(5, at({ cpuMs: 0.1, waitMs: 1_000 }, 1_000)));
    expect(world.last(5).shed).toBe(0);
  });
});

describe('the limit', () => {
  const BOUNDS = { minRequests: 2, maxRequests: 50 };
  const busy = { utilization: 1, peak: 40, latencyMs: 100 };
  const after = (windows: number) => {
    let state = UNLIMITED;
    for (let i = 0; i < windows; i += 1) state = nextLimit(state, busy, BOUNDS);
    return state.limit;
  };

  it('falls only after three busy windows, so that one long block refuses nothing', () => {
    expect([after(1), after(2)]).toEqual([Infinity, Infinity]);
    expect(after(3)).toBeLessThan(40);
  });

  it('stays between its bounds', () => {
    expect(after(1_000)).toBe(2);
    const free = { utilization: 0, peak: 30, latencyMs: 100 };
    expect(nextLimit({ ...UNLIMITED, limit: 40 }, free, BOUNDS).limit).toBe(50);
  });

  it('does not change while the app has no request', () => {
    const state = { ...UNLIMITED, limit: 9, busyWindows: 9 };
    expect(nextLimit(state, { ...busy, peak: 0, latencyMs: undefined }, BOUNDS).limit).toBe(9);
  });
});
