import { expect, it, vi } from 'vitest';
import { createAppBy } from '../../../src/bootstrap/create-app.js';
import type { CreateApp } from '../../../src/bootstrap/cluster-runtime.interface.js';

const CONTEXT = { worker: { slot: 1, pid: 2, generation: 3 } };
const app = { init: async () => {}, close: async () => {} };

/** The app of a function that returns `given`. */
const created = (given: unknown) => createAppBy((() => given) as CreateApp, CONTEXT);

it.each<[string, unknown]>([
  ['an app', app],
  ['a promise of an app', Promise.resolve(app)],
  ['a module with createApp', { createApp: () => app, default: () => 1 }],
  ['a promise of a module with a default export', Promise.resolve({ default: async () => app })],
  ['an imported CommonJS module', { default: { createApp: () => app } }],
  [
    'an imported CommonJS module with a default',
    { default: { __esModule: true, default: () => app } },
  ],
])('createApp() may return %s', async (_, given) => {
  expect(await created(given)).toBe(app);
});

it('the function of a module gets the same argument', async () => {
  const createApp = vi.fn(() => app);
  await created({ createApp });
  expect(createApp.mock.calls).toEqual([[CONTEXT]]);
});

it.each([
  [undefined, 'undefined instead of an app'],
  [undefined, "write bootstrap(() => import('./app.js')) and export createApp from app.ts"],
  [{}, 'an object without exports instead of an app'],
  [{ default: app }, 'an object with default instead of an app'],
  [{ default: () => undefined }, 'createApp() returned undefined instead of an app'],
])('createApp() may not return %j: %s', async (given, message) => {
  await expect(created(given)).rejects.toMatchObject({
    code: 'CLUSTER_CONFIGURATION',
    message: expect.stringContaining(message) as string,
  });
});

it('an error of createApp() stays as it is', async () => {
  const error = new Error('no database');
  await expect(createAppBy(() => Promise.reject(error), CONTEXT)).rejects.toBe(error);
});
