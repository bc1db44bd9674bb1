import { describe, expect, it, vi } from 'vitest';
import { createAppBy } from '../../../src/bootstrap/create-app.js';
import type { CreateApp } from '../../../src/bootstrap/cluster-runtime.interface.js';

const CONTEXT = { worker: { slot: 1, pid: 2, generation: 3 } };
const app = { init: async () => {}, close: async () => {} };

/** The app made from what the user's function returns. */
const created = (given: unknown) => createAppBy((() => given) as CreateApp, CONTEXT);

describe('createApp', () => {
  it.each<[string, unknown]>([
    ['an app', app],
    ['a promise of one', Promise.resolve(app)],
    ['a module with createApp', { createApp: () => app }],
    ['a module with a default', { default: async () => app }],
    ['a module with both, of which createApp counts', { createApp: () => app, default: () => 1 }],
    ['a promise of a module', Promise.resolve({ default: () => app })],
    ['a CommonJS module that was imported', { default: { createApp: () => app } }],
    ['one with an ES default', { default: { __esModule: true, default: () => app } }],
  ])('may give %s', async (_what, given) => {
    expect(await created(given)).toBe(app);
  });

  it('passes on to a module’s function what it was told itself', async () => {
    const createApp = vi.fn(() => app);
    await created({ createApp });
    expect(createApp.mock.calls).toEqual([[CONTEXT]]);
  });

  it.each([
    [undefined, 'undefined instead of an app'],
    [{}, 'an object without exports instead of an app'],
    [{ AppModule: class {} }, 'an object with AppModule instead of an app'],
    [{ default: app }, 'an object with default instead of an app'],
    [{ default: () => undefined }, 'createApp() returned undefined instead of an app'],
  ])('may not give %j', async (given, message) => {
    await expect(created(given)).rejects.toMatchObject({
      code: 'CLUSTER_CONFIGURATION',
      message: expect.stringContaining(message) as string,
    });
  });

  it('names the first line that works if the function gives nothing', async () => {
    await expect(created(undefined)).rejects.toMatchObject({
      message: expect.stringContaining(
        "write bootstrap(() => import('./app.js')), and export createApp from app.ts",
      ) as string,
    });
  });

  it('throws on what the user’s function throws', async () => {
    const error = new Error('no database');
    await expect(createAppBy(() => Promise.reject(error), CONTEXT)).rejects.toBe(error);
  });

  it('names the cause of what Nest says if the app has another Nest', async () => {
    const error = new Error('Nest could not find ModuleRef element (this provider …)');
    await expect(createAppBy(() => Promise.reject(error), CONTEXT)).rejects.toMatchObject({
      code: 'CLUSTER_CONFIGURATION',
      message: expect.stringMatching(/^two copies of Nest are loaded/) as string,
      cause: error,
    });
  });
});
