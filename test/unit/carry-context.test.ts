import { AsyncLocalStorage } from 'node:async_hooks';
import { afterEach, describe, expect, it } from 'vitest';
import {
  adoptContexts,
  captureContexts,
  carryContext,
  runInContexts,
} from '../../src/offload/carry-context.js';

const CARRIED = Symbol.for('nestjs-cluster.carried-contexts');

afterEach(() => {
  delete (globalThis as { [CARRIED]?: unknown })[CARRIED];
});

function carried<T>(name: string): AsyncLocalStorage<T> {
  const storage = new AsyncLocalStorage<T>();
  carryContext(name, storage);
  return storage;
}

describe('where no context is carried', () => {
  it('there is nothing to travel, and bodies just run', () => {
    expect(captureContexts()).toBeUndefined();
    expect(runInContexts(undefined, () => 5)).toBe(5);
    expect(runInContexts({ other: 1 }, () => 5)).toBe(5);
    expect(() => adoptContexts({ other: { a: 1 } })).not.toThrow();
    expect(() => adoptContexts(undefined)).not.toThrow();
  });
});

describe('a context that is carried', () => {
  it('is captured by name, where it has a store', () => {
    const request = carried<{ id: number }>('request');
    carried<string>('tenant');
    expect(captureContexts()).toBeUndefined();
    request.run({ id: 7 }, () => expect(captureContexts()).toEqual({ request: { id: 7 } }));
  });

  it.each([[0], [''], [null], [false]])('may hold %j', (store) => {
    const storage = carried<unknown>('odd');
    storage.run(store, () => expect(captureContexts()).toEqual({ odd: store }));
  });

  it('is what the body runs in where it has arrived', () => {
    const request = carried<{ id: number }>('request');
    const tenant = carried<string>('tenant');
    const seen = runInContexts({ request: { id: 7 }, tenant: 'a' }, () => [
      request.getStore(),
      tenant.getStore(),
      captureContexts(),
    ]);
    expect(seen).toEqual([{ id: 7 }, 'a', { request: { id: 7 }, tenant: 'a' }]);
    expect(captureContexts()).toBeUndefined();
  });

  it('is there to the end of a body that is asynchronous', async () => {
    const request = carried<{ id: number }>('request');
    const id = await runInContexts({ request: { id: 7 } }, async () => {
      await Promise.resolve();
      return request.getStore()?.id;
    });
    expect(id).toBe(7);
  });

  it('is left out where it has not arrived, and what is not known is left alone', () => {
    const request = carried<{ id: number }>('request');
    expect(runInContexts({ other: 1 }, () => request.getStore())).toBeUndefined();
    const outer = { id: 1 };
    request.run(outer, () =>
      runInContexts({ other: 1 }, () => expect(request.getStore()).toBe(outer)),
    );
  });

  it('is that of the last storage of its name', () => {
    const [first, second] = [carried<number>('request'), carried<number>('request')];
    expect(runInContexts({ request: 1 }, () => [first.getStore(), second.getStore()])).toEqual([
      undefined,
      1,
    ]);
  });

  it('needs no AsyncLocalStorage: what has getStore() and run() will do', () => {
    let current: string | undefined = 'a';
    carryContext<string>('plain', {
      getStore: () => current,
      run: (store, body) => {
        current = store;
        return body();
      },
    });
    expect(captureContexts()).toEqual({ plain: 'a' });
    runInContexts({ plain: 'b' }, () => expect(current).toBe('b'));
  });

  it('lets through what the body throws', () => {
    carried('request');
    expect(() =>
      runInContexts({ request: {} }, () => {
        throw new Error('x');
      }),
    ).toThrow('x');
  });
});

describe('what a body has changed in its context', () => {
  it('is assigned to the object of the caller, which stays the one it was', () => {
    const request = carried<Record<string, unknown>>('request');
    const store = { id: 7, kept: true };
    request.run(store, () => adoptContexts({ request: { id: 8, rows: [1] } }));
    expect(store).toEqual({ id: 8, kept: true, rows: [1] });
  });

  it('is set in the Map of the caller', () => {
    const request = carried<Map<string, unknown>>('request');
    const store = new Map<string, unknown>([
      ['id', 7],
      ['kept', true],
    ]);
    request.run(store, () => adoptContexts({ request: new Map([['id', 8]]) }));
    expect([...store]).toEqual([
      ['id', 8],
      ['kept', true],
    ]);
  });

  it.each([
    ['a text', 'a', 'b'],
    ['a number where an object comes', 1, { a: 1 }],
    ['an object where a text comes', { a: 1 }, 'b'],
    ['null where an object comes', null, { a: 1 }],
  ])('leaves a store alone that is %s', (_, store: unknown, changed: unknown) => {
    const before = structuredClone(store);
    const storage = carried<unknown>('odd');
    storage.run(store, () => adoptContexts({ odd: changed }));
    expect(store).toEqual(before);
  });

  it('is dropped where the caller has no store any more, or never had that storage', () => {
    carried('request');
    expect(() => adoptContexts({ request: { a: 1 }, unknown: { b: 2 } })).not.toThrow();
  });
});
