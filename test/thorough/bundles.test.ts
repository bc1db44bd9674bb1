import { rolldown } from 'rolldown';
import { mkdirSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { CompiledApp, type Sources } from '../support/compiled-app.js';
import { HANG_TIMEOUT_MS } from '../support/hang.js';
import { getJson, request } from '../support/http-client.js';

const SOURCES: Sources = {
  main: `
    import 'reflect-metadata';
    import { Controller, Get, Module } from '@nestjs/common';
    import { NestFactory } from '@nestjs/core';
    import { ClusterModule } from 'nestjs-cluster';

    @Controller()
    class Cats {
      @Get('cats') cats() {
        return 'cats';
      }
      @Get('block') block() {
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); // hangs without CPU time
      }
    }
    @Module({ imports: [ClusterModule.forRoot()], controllers: [Cats] })
    class AppModule {}

    void ClusterModule.bootstrap(
      () => NestFactory.create(AppModule, { logger: ['error', 'warn'] }),
      JSON.parse(process.env['TEST_OPTIONS']!),
    );
  `,
};

/** Bundles an app and this package into one file. As with esbuild, CommonJS lacks `import.meta`. */
async function bundle(format: 'esm' | 'cjs', { installed }: { installed: boolean }) {
  const app = new CompiledApp(SOURCES);
  usePublishedFiles(app.directory);
  const build = await rolldown({
    input: app.path('main'),
    external: (id) => !/^[./]|^nestjs-cluster/.test(id),
    platform: 'node',
    cwd: app.directory,
    ...(format === 'cjs' && { transform: { define: { 'import.meta.url': 'undefined' } } }),
  });
  const { output } = await build.generate({ format, codeSplitting: false });
  await build.close();
  app.write('package.json', JSON.stringify({ type: format === 'esm' ? 'module' : 'commonjs' }));
  app.write('main.js', output[0].code);
  if (!installed) linkOtherPackages(app.directory);
  return app;
}

/** Links the repository's packages instead of the fixtures' packages, which are bundles. */
function usePublishedFiles(directory: string): void {
  rmSync(join(directory, 'node_modules'));
  symlinkSync(join(import.meta.dirname, '../../node_modules'), join(directory, 'node_modules'));
}

/** Links to each package but this one. */
function linkOtherPackages(directory: string): void {
  const all = join(import.meta.dirname, '../../node_modules');
  const modules = join(directory, 'node_modules');
  rmSync(modules);
  mkdirSync(modules);
  for (const name of readdirSync(all).filter((each) => each !== 'nestjs-cluster')) {
    symlinkSync(join(all, name), join(modules, name));
  }
}

describe.each(['esm', 'cjs'] as const)('an app in one file with this package, in %s', (format) => {
  afterEach(stopAll);

  it('has its watchdog and its admin listener, where the package is installed', async () => {
    const app = await bundle(format, { installed: true });
    const cluster = await ClusterProcess.start({
      program: app.path('main'),
      cwd: app.directory,
      options: {
        workers: 1,
        admin: { port: 0 },
        hangTimeoutMs: HANG_TIMEOUT_MS,
      },
    });

    expect((await request(cluster.url, '/cats')).body).toBe('cats');
    const { adminUrl } = cluster.all('listening')[0] as unknown as { adminUrl: string };
    expect((await getJson(adminUrl, '/health/live')).status).toBe(200);
    void request(cluster.url, '/block');
    const died = await cluster.event('worker-died');
    expect(died).toMatchObject({ cause: 'hang', message: expect.stringContaining('Cats.block') });
    expect(cluster.all('warning')).toEqual([]);
  });

  it('runs without a watchdog, and says in one line what to do, where it is not', async () => {
    const app = await bundle(format, { installed: false });
    const cluster = await ClusterProcess.start({
      program: app.path('main'),
      cwd: app.directory,
      options: { workers: 1 },
    });

    expect((await request(cluster.url, '/cats')).body).toBe('cats');
    expect(cluster.all('warning').map(({ message }) => message)).toEqual([
      expect.stringContaining(
        "the watchdog thread has stopped: nestjs-cluster was bundled without the files for its threads and processes; exclude it and Nest from the bundle (packages: 'external' for esbuild,",
      ),
    ]);
  });
});

it('a bundle of files that import this package, and of others that require it, has it once', async () => {
  const app = new CompiledApp({});
  usePublishedFiles(app.directory);
  app.write(
    'main.js',
    `import { bootstrap } from 'nestjs-cluster/bootstrap';
     import old from './old.cjs';
     console.log(bootstrap === old.bootstrap);`,
  );
  app.write('old.cjs', `module.exports = require('nestjs-cluster/bootstrap');`);
  const build = await rolldown({
    input: app.path('main'),
    external: (id) => !/^[./]|^nestjs-cluster/.test(id),
    platform: 'node',
    cwd: app.directory,
  });
  const { output } = await build.generate({ format: 'esm', codeSplitting: false });
  await build.close();

  const { moduleIds } = output[0];
  expect(moduleIds.some((id) => id.endsWith('/dist/bootstrap/index.js'))).toBe(true);
  expect(moduleIds.filter((id) => id.includes('/common-js/'))).toEqual([]);
});
