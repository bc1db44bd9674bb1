import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { createAppBy } from '../../../src/bootstrap/create-app.js';
import type { CreateApp } from '../../../src/bootstrap/cluster-runtime.interface.js';
import { temporaryDirectory } from '../../support/temporary-directory.js';

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

  describe('in a built ES module that is imported by another name', () => {
    /** A function that lets Node import `name` from `main.cjs`, in a folder with `files`. */
    const importing = (name: string, files: readonly string[]) => {
      const folder = temporaryDirectory();
      for (const file of files) {
        mkdirSync(dirname(join(folder, file)), { recursive: true });
        writeFileSync(join(folder, file), '');
      }
      const main = join(folder, 'main.cjs'); // Vitest leaves the import() of a required file to Node
      writeFileSync(main, `exports.load = () => import('${name}');`);
      return { main, load: (createRequire(main)(main) as { load: CreateApp }).load };
    };

    it.each([
      ['without its extension', './app', ['app.js'], './app.js'],
      ['without its extension, next to a folder', './app', ['app.js', 'app/x.js'], './app.js'],
      ['as a folder', './app', ['app/index.js'], './app/index.js'],
      ['as TypeScript', './app.ts', ['app.js'], './app.js'],
      ['in another folder', './api/app', ['api/app.mjs'], './api/app.mjs'],
    ])('is told the right name: %s', async (_what, name, files, right) => {
      const { main, load } = importing(name, files);
      await expect(createAppBy(load, CONTEXT)).rejects.toMatchObject({
        code: 'CLUSTER_CONFIGURATION',
        message: `${main} imports '${name}', but Node finds no file of this name; write '${right}' there, also in TypeScript`,
        cause: { code: expect.stringMatching(/^ERR_/) as string },
      });
    });

    it.each([
      ['a file that is nowhere', './other'],
      ['a package', 'nestjs-nowhere'],
    ])('is left as it is: %s', async (_what, name) => {
      const { load } = importing(name, ['app.js']);
      await expect(createAppBy(load, CONTEXT)).rejects.toMatchObject({
        code: 'ERR_MODULE_NOT_FOUND',
      });
    });
  });

  describe('that a loader of TypeScript does not find', () => {
    /** The loader's error for a module `name`, in a folder that has `app.module.ts`. */
    const lost = (name: string, code = 'MODULE_NOT_FOUND') => {
      const folder = temporaryDirectory();
      writeFileSync(join(folder, 'app.module.ts'), '');
      const main = join(folder, 'main.ts');
      const message = `Cannot find module '${name}'\nRequire stack:\n- ${main}`;
      return Object.assign(new Error(message), { code, requireStack: [main] });
    };

    it('is told what to import', async () => {
      const error = lost('./app.module.js');
      await expect(createAppBy(() => Promise.reject(error), CONTEXT)).rejects.toMatchObject({
        code: 'CLUSTER_CONFIGURATION',
        message: `${error.requireStack[0]} imports './app.module.js', which exists as TypeScript, but the loader that started the app does not find it; import './app.module' at the top of main.ts, or start the app from the output of tsc or SWC`,
        cause: error,
      });
    });

    it.each([
      ['a module that is nowhere', './other.js'],
      ['a package', 'nope.js'],
      ['another error', './app.module.js', 'EACCES'],
    ])('is left as it is: %s', async (_what, name, code?: string) => {
      const error = lost(name, code);
      await expect(createAppBy(() => Promise.reject(error), CONTEXT)).rejects.toBe(error);
    });
  });
});
