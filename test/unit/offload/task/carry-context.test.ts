import { AsyncLocalStorage } from 'node:async_hooks';
import { CLS_ID, CLS_REQ, ClsServiceManager, type ClsStore } from 'nestjs-cls';
import { afterEach, describe, expect, it } from 'vitest';
import {
  captureContexts,
  carryContext,
  runInContexts,
} from '../../../../src/offload/task/carry-context.js';

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

describe('the store of nestjs-cls', () => {
  const cls = ClsServiceManager.getClsService();
  const seen = () => ({ id: cls.getId(), tenant: cls.get('tenant') as unknown });

  it('arrives with its id as the documentation has it', () => {
    carryContext('cls', {
      getStore: () =>
        cls.isActive() ? { id: cls.getId(), tenant: cls.get<string>('tenant') } : undefined,
      run: ({ id, tenant }, body) => cls.runWith({ [CLS_ID]: id, tenant } as ClsStore, body),
    });
    expect(captureContexts()).toBeUndefined();
    const arrived = cls.runWith(
      { [CLS_ID]: 'abc', [CLS_REQ]: { on() {} }, tenant: 'a' } as never,
      () => structuredClone(captureContexts()),
    );
    expect(runInContexts(arrived, seen)).toEqual({ id: 'abc', tenant: 'a' });
  });
});
