import { describe, expect, it } from 'vitest';
import { ModePolicy } from '../../../../src/offload/admission/mode.policy.js';

const HOP_MS = 0.03;
const SHORT_MS = 0.005;
const LONG_MS = 66;

/** A call that has computed all the time. */
const computed = (ms: number) => ({ ms, cpuMs: ms });

/** Makes calls where the policy sends them. */
class World {
  readonly policy = new ModePolicy();
  hopMs = HOP_MS;

  /** @returns for each call whether it ran on the event loop. */
  make(calls: number, bodyMs: number | ((call: number) => number)): boolean[] {
    return Array.from({ length: calls }, (_, call) => {
      const ms = typeof bodyMs === 'number' ? bodyMs : bodyMs(call);
      const { isInline } = this.policy;
      if (isInline) this.policy.ranInline(computed(ms));
      else this.policy.ranInThread(computed(ms), this.hopMs);
      return isInline;
    });
  }
}

/** A world in which the method runs on the event loop already. */
function inlineWorld(): World {
  const world = new World();
  world.make(20, SHORT_MS);
  expect(world.policy.isInline).toBe(true);
  return world;
}

const count = (places: readonly boolean[]) => places.filter((inline) => inline).length;

describe("the policy of mode: 'auto'", () => {
  it('begins in a thread, and has short calls on the event loop after 16', () => {
    const places = new World().make(10_000, SHORT_MS);
    expect(places.indexOf(true)).toBe(16);
    expect(count(places)).toBe(10_000 - 16);
  });

  it.each([0.33, 0.6, 6, LONG_MS])('has calls of %d ms in a thread, always', (ms) => {
    expect(count(new World().make(10_000, ms))).toBe(0);
  });

  it('has calls of nine hops on the event loop, also where the hop is longer', () => {
    expect(count(new World().make(1_000, 9 * HOP_MS))).toBeGreaterThan(950);
    const world = new World();
    world.hopMs = 0.08;
    expect(count(world.make(1_000, 0.6))).toBeGreaterThan(950);
  });

  it('has calls above 1 ms in a thread, however long the hop of a busy event loop is', () => {
    const world = new World();
    world.hopMs = 25;
    expect(count(world.make(1_000, 1.1))).toBe(0);
    expect(count(world.make(1_000, 0.5))).toBeGreaterThan(0);
  });

  it('takes the usual hop for the hop, not those that waited for something', () => {
    const world = new World();
    for (let call = 0; call < 1_000; call += 1) {
      world.policy.ranInThread(computed(0.5), call % 3 === 0 ? 10 : HOP_MS);
    }
    expect(world.policy.isInline).toBe(false);
  });

  it('gets over the slow hops of the first calls', () => {
    const world = new World();
    for (const ms of [3, 2, 1]) world.policy.ranInThread(computed(0.4), ms);
    expect(count(world.make(1_000, 0.4))).toBe(0);
  });

  it.each([1 / 2, 1 / 10, 1 / 100, 1 / 500])(
    'has nearly no long call block the event loop where they are %d of all',
    (share) => {
      const world = new World();
      const every = Math.round(1 / share);
      let blocked = 0;
      world.make(200_000, (call) => {
        const isLong = call % every === every - 1;
        if (isLong && world.policy.isInline) blocked += 1;
        return isLong ? LONG_MS : SHORT_MS;
      });
      // Each of them sends the method to a thread for thousands of calls.
      expect(blocked).toBeLessThanOrEqual(20);
    },
  );

  it.each([
    [LONG_MS, 1],
    [6, 1],
    [2, 7],
    [0.6, 70],
    [0.4, 210],
  ])('is back in a thread when calls become %d ms long, after at most %i', (ms, most) => {
    const places = inlineWorld().make(2_000, ms);
    expect(count(places)).toBeLessThanOrEqual(most);
    expect(places.at(-1)).toBe(false);
  });

  it('is on the event loop again when calls have become short, whatever was before', () => {
    const world = inlineWorld();
    world.make(100_000, LONG_MS);
    const places = world.make(5_000, SHORT_MS);
    expect(places.indexOf(true)).toBeGreaterThan(1_000);
    expect(places.at(-1)).toBe(true);
  });

  it('stays on the event loop after one call of 4 ms', () => {
    const world = inlineWorld();
    world.make(1, 4);
    expect(count(world.make(100, SHORT_MS))).toBe(100);
  });

  it('stays on the event loop while calls end in a thread that began before', () => {
    const { policy } = inlineWorld();
    policy.ranInThread(computed(0.5), HOP_MS);
    expect(policy.isInline).toBe(true);
    policy.ranInThread(computed(6), HOP_MS);
    expect(policy.isInline).toBe(false);
  });

  it('gets over a hop without any time', () => {
    const world = new World();
    world.policy.ranInThread(computed(SHORT_MS), -1);
    expect(world.make(500, SHORT_MS).at(-1)).toBe(true);
  });

  it('stays on the event loop if the process waited for a core once in a while', () => {
    const { policy } = inlineWorld();
    for (let call = 0; call < 2_000; call += 1) {
      policy.ranInline(call % 50 === 0 ? { ms: 60, cpuMs: 1 } : computed(SHORT_MS));
      expect(policy.isInline).toBe(true);
    }
  });

  it('has a method in a thread that waits for something in every call', () => {
    const { policy } = inlineWorld();
    for (let call = 0; call < 15; call += 1) policy.ranInline({ ms: 60, cpuMs: 0.1 });
    expect(policy.isInline).toBe(false);
  });

  it('waits for longer after a longer call', () => {
    const [after5, after10, after20] = [5, 10, 20].map((ms) => {
      const world = inlineWorld();
      world.make(1, ms);
      return world.make(10_000, SHORT_MS).indexOf(true);
    });
    expect(after5).toBeGreaterThan(50);
    expect(after10).toBeGreaterThan(3 * after5!);
    expect(after20).toBeGreaterThan(3 * after10!);
  });

  it('heeds a long call in a thread for a while: it may have waited for a core', () => {
    const world = new World();
    world.make(10, SHORT_MS);
    world.make(1, 30);
    const places = world.make(600, SHORT_MS);
    expect(places.indexOf(true)).toBeGreaterThan(300);
    expect(places.at(-1)).toBe(true);
  });

  it('has a method that was refused in a thread for thousands of calls', () => {
    const world = inlineWorld();
    world.policy.refuse();
    expect(world.make(10_000, SHORT_MS).indexOf(true)).toBeGreaterThan(3_000);
  });
});
