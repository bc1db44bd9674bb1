import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { HubCore } from '../../../src/thread/hub-core.js';
import { type LockRequest, Locks } from '../../../src/thread/locks.js';
import { NO_BODY } from '../../../src/wire/frame-socket.js';
import { fakePeer } from '../support/hub-workers.js';

/** How many may hold each lock, and wait for it. */
const RULES = {
  a: { max: 1, maxWaiting: Infinity },
  b: { max: 3, maxWaiting: 2 },
};
type Name = keyof typeof RULES;
const NAMES: readonly Name[] = ['a', 'b'];

const peers = [fakePeer().peer, fakePeer().peer, fakePeer().peer];
const aName = fc.constantFrom(...NAMES);
const aPeer = fc.constantFrom(...peers);
const step = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('acquire' as const),
      name: aName,
      peer: aPeer,
      mayWait: fc.boolean(),
    }),
  },
  fc.record({ do: fc.constant('release' as const), nth: fc.nat(5) }),
  fc.record({ do: fc.constant('cancel' as const), nth: fc.nat(8) }),
  fc.record({ do: fc.constant('leave' as const), peer: aPeer }),
);

interface Known {
  readonly name: Name;
  readonly request: LockRequest;
}

/** Locks, and a model with the same rules, without optimizations, that judges each answer. */
class Judged {
  held: (Known & { readonly grant: number })[] = [];
  waiting: Known[] = [];
  refused = 0;
  #asking: Known | undefined;

  readonly locks = new Locks((request, grant) => {
    const known = this.waiting.find((each) => each.request === request) ?? this.#asking!;
    if (grant === undefined) return void (this.refused += 1);
    expect(this.hasRoom(known.name)).toBe(true);
    const next = this.next(known.name);
    if (known === this.#asking) expect(next).toBeUndefined();
    else expect(known).toBe(next);
    this.waiting = this.waiting.filter((each) => each !== known);
    this.held.push({ ...known, grant });
  });

  next(name: Name): Known | undefined {
    return this.waiting.find((each) => each.name === name);
  }

  hasRoom(name: Name): boolean {
    return this.held.filter((each) => each.name === name).length < RULES[name].max;
  }

  acquire(name: Name, request: LockRequest, mayWait: boolean): void {
    const isFree = this.hasRoom(name) && this.next(name) === undefined;
    const others = this.waiting.filter((other) => other.name === name).length;
    const waits = !isFree && mayWait && others < RULES[name].maxWaiting;
    const before = [this.held.length, this.refused];
    this.#asking = { name, request };
    this.locks.acquire(name, request, mayWait);
    expect([this.held.length - before[0]!, this.refused - before[1]!]).toEqual([
      isFree ? 1 : 0,
      isFree || waits ? 0 : 1,
    ]);
    if (waits) this.waiting.push(this.#asking);
    this.#asking = undefined;
  }
}

describe('locks', () => {
  it('are held by as many as may at a time, in the order of asking, by nobody who is gone or has stopped waiting', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
        const judged = new Judged();
        const { locks } = judged;
        let lastId = 0;
        for (const each of steps) {
          if (each.do === 'acquire') {
            const { name, peer, mayWait } = each;
            judged.acquire(name, { peer, id: (lastId += 1), ...RULES[name] }, mayWait);
          } else if (each.do === 'release') {
            const held = judged.held[each.nth];
            if (held === undefined) continue;
            locks.release(held.grant, fakePeer().peer); // it is not the holder
            expect(judged.held).toContain(held);
            judged.held = judged.held.filter((other) => other !== held);
            locks.release(held.grant, held.request.peer);
          } else if (each.do === 'cancel') {
            const waiting = judged.waiting[each.nth];
            if (waiting === undefined) continue;
            judged.waiting = judged.waiting.filter((other) => other !== waiting);
            locks.cancel(waiting.request.peer, waiting.request.id);
          } else {
            judged.held = judged.held.filter(({ request }) => request.peer !== each.peer);
            judged.waiting = judged.waiting.filter(({ request }) => request.peer !== each.peer);
            locks.leave(each.peer);
          }
          // Nobody waits for what is free.
          for (const name of NAMES) {
            if (judged.hasRoom(name)) expect(judged.next(name)).toBeUndefined();
          }
        }
      }),
      { numRuns: 500 },
    );
  });

  const { peer } = fakePeer();
  const requests = (count: number, max = 1) =>
    Array.from({ length: count }, (_, id) => ({ peer, id, max }));

  it('are given after a hub that ended to those who held them, before anybody else', () => {
    const answer = vi.fn();
    const locks = new Locks(answer, 0, performance.now() + 60_000);
    const [one, two, three, waits] = requests(4, 2);
    locks.acquire('a', waits!, true);
    for (const each of [one!, two!, three!]) locks.reclaim('a', each);
    expect(answer.mock.calls).toEqual([
      [one, 1],
      [two, 2],
      [three, undefined],
    ]);
    locks.open();
    locks.reclaim('c', three!);
    expect(answer).toHaveBeenLastCalledWith(three, undefined);
    locks.release(1, peer);
    expect(answer).toHaveBeenLastCalledWith(waits, 3);
  });

  it('are given in the order of asking also where releases differ in how many may hold them', () => {
    const answer = vi.fn();
    const locks = new Locks(answer);
    const [holder, old, young] = [3, 1, 3].map((max, id) => ({ peer, id, max }));
    locks.acquire('a', holder!, false);
    locks.acquire('a', old!, true);
    locks.acquire('a', young!, true);
    expect(answer).toHaveBeenCalledTimes(1);
    locks.release(1, peer);
    expect(answer.mock.calls.slice(1)).toEqual([
      [old, 2],
      [young, 3],
    ]);
  });

  it('are not freed by what a worker has of the hub before, whose grants are lower', () => {
    const worker = fakePeer();
    const ask = (core: HubCore, id: number) => {
      core.receive(worker.peer, { op: 'lock', id, name: 'a', waitMs: 0 }, NO_BODY);
      return worker.told.at(-1) as { grant: number };
    };
    const old = ask(new HubCore(), 1).grant;
    const core = new HubCore();
    expect(ask(core, 2).grant).toBeGreaterThan(old);
    core.receive(worker.peer, { op: 'unlock', grant: old }, NO_BODY);
    expect(ask(core, 3)).toEqual({ t: 'taken', id: 3 });
  });
});
