import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { HubCore } from '../../../src/thread/hub-core.js';
import { NO_BODY } from '../../../src/wire/limits.js';
import { type LockAnswer, type LockRequest, Locks } from '../../../src/thread/services/locks.js';
import { fakePeer } from '../support/hub-workers.js';

type Request = LockRequest<string>;

/** How many may hold each lock, and wait for it. */
const RULES = {
  a: { max: 1, maxWaiting: Infinity },
  b: { max: 3, maxWaiting: 2 },
};
const NAMES = ['a', 'b'] as const;

const names = fc.constantFrom(...NAMES);
const peers = fc.constantFrom('p', 'q', 'r');
const step = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('acquire' as const),
      name: names,
      peer: peers,
      waitMs: fc.nat(40),
    }),
  },
  fc.record({ do: fc.constant('release' as const), nth: fc.nat(5) }),
  fc.record({ do: fc.constant('cancel' as const), nth: fc.nat(8) }),
  fc.record({ do: fc.constant('leave' as const), peer: peers }),
  fc.record({ do: fc.constant('pass' as const), ms: fc.nat(25) }),
);

/** The model that the locks are compared with: the same rules, without optimizations. */
class Model {
  held: { name: keyof typeof RULES; request: Request; grant: number }[] = [];
  waiting: { name: keyof typeof RULES; request: Request; until: number }[] = [];

  next(name: string, now: number): Request | undefined {
    return this.waiting.find((each) => each.name === name && each.until > now)?.request;
  }

  hasRoom(name: keyof typeof RULES): boolean {
    return this.held.filter((each) => each.name === name).length < RULES[name].max;
  }
}

describe('locks', () => {
  it('are held by as many as may at a time, in the order of asking, by nobody who is gone or has stopped waiting', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
        const locks = new Locks<string, Request>();
        const model = new Model();
        let now = 0;
        let lastId = 0;
        const take = (
          answers: LockAnswer<string, Request>[],
          nameOf: (request: Request) => keyof typeof RULES,
        ) => {
          for (const answer of answers) {
            const name = nameOf(answer.request);
            if (answer.type === 'granted') {
              expect(model.hasRoom(name)).toBe(true);
              const waited = model.waiting.some(({ request }) => request.id === answer.request.id);
              if (waited) expect(answer.request).toEqual(model.next(name, now));
              else expect(model.next(name, now)).toBeUndefined();
              model.held.push({ name, request: answer.request, grant: answer.grant });
            }
            model.waiting = model.waiting.filter(({ request }) => request.id !== answer.request.id);
          }
        };
        const nameOf = (request: Request) =>
          model.waiting.find((each) => each.request.id === request.id)!.name;
        for (const each of steps) {
          switch (each.do) {
            case 'acquire': {
              const { name, peer, waitMs } = each;
              const request = { peer, id: (lastId += 1), ...RULES[name] };
              const free = model.hasRoom(name) && model.next(name, now) === undefined;
              const others = model.waiting.filter((other) => other.name === name).length;
              const answers = locks.acquire(name, request, waitMs, now);
              if (free) expect(answers.map(({ type }) => type)).toEqual(['granted']);
              else
                expect(answers).toHaveLength(waitMs > 0 && others < RULES[name].maxWaiting ? 0 : 1);
              if (answers.length === 0) model.waiting.push({ name, request, until: now + waitMs });
              take(answers, () => name);
              break;
            }
            case 'release': {
              const held = model.held[each.nth];
              if (held === undefined) break;
              expect(locks.release(held.grant, 'nobody', now)).toEqual([]);
              model.held = model.held.filter((other) => other !== held);
              take(locks.release(held.grant, held.request.peer, now), nameOf);
              break;
            }
            case 'cancel': {
              const waiting = model.waiting[each.nth];
              if (waiting === undefined) break;
              locks.cancel(waiting.request.id, waiting.request.peer);
              model.waiting = model.waiting.filter((other) => other !== waiting);
              break;
            }
            case 'leave': {
              model.held = model.held.filter(({ request }) => request.peer !== each.peer);
              model.waiting = model.waiting.filter(({ request }) => request.peer !== each.peer);
              take(locks.leave(each.peer, now), nameOf);
              break;
            }
            case 'pass':
              now += each.ms;
          }
          // Nobody waits for what is free.
          for (const name of NAMES) {
            if (model.hasRoom(name)) expect(model.next(name, now)).toBeUndefined();
          }
        }
        for (const peer of ['p', 'q', 'r']) locks.leave(peer, Infinity);
        expect(locks.size).toBe(0);
      }),
      { numRuns: 500 },
    );
  });

  it('are given after a hub that ended to those who held them, before anybody else', () => {
    const locks = new Locks<string, Request>(100);
    const [holder, other] = [
      { peer: 'p', id: 1 },
      { peer: 'q', id: 2 },
    ];
    expect(locks.acquire('a', other, 1_000, 10)).toEqual([]);
    expect(locks.acquire('b', other, 1_000, 10)).toEqual([]);
    expect(locks.reclaim('a', holder, 20)).toMatchObject([{ type: 'granted', request: holder }]);
    expect(locks.reclaim('a', other, 20)).toMatchObject([{ type: 'expired' }]);
    expect(locks.open(100)).toMatchObject([{ type: 'granted', request: other, grant: 2 }]);
    expect(locks.reclaim('c', holder, 101)).toMatchObject([{ type: 'expired' }]);
    expect(locks.release(1, 'p', 110)).toMatchObject([{ type: 'granted', request: other }]);
  });

  it('are given after a hub that ended to as many as may hold them', () => {
    const locks = new Locks<string, Request>(100);
    const [one, two, three] = [1, 2, 3].map((id) => ({ peer: 'p', id, max: 2 }));
    expect(locks.reclaim('a', one!, 20)).toMatchObject([{ type: 'granted' }]);
    expect(locks.reclaim('a', two!, 20)).toMatchObject([{ type: 'granted' }]);
    expect(locks.reclaim('a', three!, 20)).toMatchObject([{ type: 'expired' }]);
    expect(locks.acquire('a', three!, 1_000, 30)).toEqual([]);
    expect(locks.release(1, 'p', 40)).toEqual([]);
    expect(locks.open(100)).toMatchObject([{ type: 'granted', request: three }]);
  });

  it('are not freed by what a worker has of the hub before', () => {
    const { peer, told } = fakePeer();
    const acquire = (core: HubCore): number => {
      core.receive(peer, { op: 'lock', id: 1, name: 'a', waitMs: 0 }, NO_BODY);
      return (told.at(-1) as { grant: number }).grant;
    };
    const old = acquire(new HubCore());
    const core = new HubCore();
    acquire(core);
    core.receive(peer, { op: 'unlock', grant: old }, NO_BODY);
    core.receive(peer, { op: 'lock', id: 2, name: 'a', waitMs: 0 }, NO_BODY);
    expect(told.at(-1)).toEqual({ t: 'expired', id: 2 });
  });

  it('have grants that only grow, also from one hub to the next', () => {
    const { peer, told } = fakePeer();
    for (let hub = 0; hub < 3; hub += 1) {
      const core = new HubCore();
      for (const name of ['a', 'b', 'c']) {
        core.receive(peer, { op: 'lock', id: 1, name, waitMs: 0 }, NO_BODY);
      }
    }
    const grants = told.map((answer) => (answer as { grant: number }).grant);
    expect(grants).toHaveLength(9);
    expect(grants).toEqual(grants.toSorted((a, b) => a - b));
    expect(new Set(grants).size).toBe(9);
  });

  it('are given in the order of asking also where releases differ in how many may hold them', () => {
    const locks = new Locks<string, Request>();
    const [holder, old, young] = [3, 1, 3].map((max, id) => ({ peer: 'p', id, max }));
    locks.acquire('a', holder!, 0, 0);
    expect(locks.acquire('a', old!, 10, 0)).toEqual([]);
    expect(locks.acquire('a', young!, 10, 0)).toEqual([]);
    expect(locks.release(1, 'p', 1)).toMatchObject([{ request: old }, { request: young }]);
  });

  it('are refused beyond as many as may wait', () => {
    const locks = new Locks<string, Request>(-Infinity, 1);
    locks.acquire('a', { peer: 'p', id: 1 }, 10, 0);
    expect(locks.acquire('a', { peer: 'p', id: 2 }, 10, 0)).toEqual([]);
    expect(locks.acquire('a', { peer: 'p', id: 3 }, 10, 0)).toMatchObject([{ type: 'full' }]);
    locks.cancel(2, 'p');
    expect(locks.acquire('a', { peer: 'p', id: 4 }, 10, 0)).toEqual([]);
  });

  it('are refused beyond as many as there may be', () => {
    const locks = new Locks<string, Request>(-Infinity, 2);
    for (const name of ['a', 'b']) locks.acquire(name, { peer: 'p', id: 1 }, 0, 0);
    expect(locks.acquire('c', { peer: 'p', id: 2 }, 0, 0)).toMatchObject([{ type: 'full' }]);
    expect(locks.size).toBe(2);
    locks.release(1, 'p', 0);
    expect(locks.acquire('c', { peer: 'p', id: 3 }, 0, 0)).toMatchObject([{ type: 'granted' }]);
  });

  it('are others than a key of a limit, whatever the names hold', () => {
    const { peer, told } = fakePeer();
    const core = new HubCore();
    const limit = (name: string) => ({ name, max: 1, maxWaiting: 0 });
    const asked = [
      { name: '1 ab' },
      { name: 'b', limit: limit('a') },
      { name: 'ab' },
      { name: '', limit: limit('ab') },
      { name: 'bc', limit: limit('a') },
      { name: 'c', limit: limit('ab') },
    ];
    asked.forEach((each, id) =>
      core.receive(peer, { op: 'lock', id, ...each, waitMs: 0 }, NO_BODY),
    );
    expect(told.map(({ t }) => t)).toEqual(asked.map(() => 'granted'));
  });
});
