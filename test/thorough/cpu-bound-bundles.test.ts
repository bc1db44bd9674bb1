import { type OutputOptions, rolldown } from 'rolldown';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { CompiledApp, type Sources } from '../support/compiled-app.js';
import { getJson } from '../support/http-client.js';

const NEST = `
  import { Controller, Get, Injectable, Module } from '@nestjs/common';
  import { threadId } from 'node:worker_threads';
  import { ClusterModule, CpuBound } from 'nestjs-cluster';
`;

/** Two classes of one name, of which an app provides one. */
const libraryOf = (answer: string, options = '') => `${NEST}
  @Injectable()
  class Sums {
    @CpuBound(${options}) async run() { return ['${answer}', threadId > 0]; }
  }
  export { Sums as ${answer}Sums };
`;

const SOURCES: Sources = {
  'library-one': libraryOf('One'),
  'library-two': libraryOf('Two'),
  table: `${NEST}
    @Injectable()
    export class Table { readonly words = ['cat']; }
    @Injectable()
    class Search {
      constructor(readonly table: Table) {}
      @CpuBound() async find() { return [...this.table.words, threadId > 0]; }
    }
    @Module({ providers: [Table, Search], exports: [Search] })
    export class SearchModule {}
    export { Search };
  `,
  'app.module': `${NEST}
    import { OneSums } from './library-one.js';
    import { TwoSums } from './library-two.js';
    import { Search, SearchModule } from './table.js';

    @Controller()
    class Answers {
      constructor(readonly sums: TwoSums, readonly search: Search) {}
      @Get('sums') run() { return this.sums.run(); }
      @Get('search') find() { return this.search.find(); }
    }
    @Module({
      imports: [SearchModule, ClusterModule.forRoot({ offload: { module: SearchModule } })],
      controllers: [Answers],
      providers: [TwoSums],
    })
    export class AppModule { static readonly unused = OneSums; }
  `,
  app: `
    import 'reflect-metadata';
    import { NestFactory } from '@nestjs/core';
    import { AppModule } from './app.module.js';
    export const createApp = () => NestFactory.create(AppModule, { logger: ['error', 'warn'] });
  `,
};

const OPTIONS = `JSON.parse(process.env['TEST_OPTIONS']!)`;
const MAINS = {
  'at the top': `
    import { bootstrap } from 'nestjs-cluster/bootstrap';
    import { createApp } from './app.js';
    void bootstrap(createApp, ${OPTIONS});
  `,
  'by import()': `
    import { bootstrap } from 'nestjs-cluster/bootstrap';
    void bootstrap(() => import('./app.js'), ${OPTIONS});
  `,
};

/** Bundles an app into one file without source maps, and leaves the packages out. */
async function bundle(sources: Sources, main: keyof typeof MAINS, output: OutputOptions) {
  const app = new CompiledApp({ ...SOURCES, ...sources, main: MAINS[main] });
  onTestFinished(() => app.remove());
  const build = await rolldown({
    input: app.path('main'),
    external: /^[^./]/,
    platform: 'node',
    cwd: app.directory,
  });
  const made = await build.generate({ keepNames: true, codeSplitting: false, ...output });
  await build.close();
  const type = output.format === 'cjs' ? 'commonjs' : 'module';
  app.write('package.json', JSON.stringify({ type }));
  app.write('main.js', made.output[0].code);
  return new ClusterProcess({
    program: app.path('main'),
    cwd: app.directory,
    options: { workers: 0 },
    env: { CLUSTER_THREADS: '1' },
  });
}

afterEach(stopAll);

describe('@CpuBound() in an app that is one file', () => {
  it.each([
    { main: 'at the top', output: { format: 'esm' } },
    { main: 'by import()', output: { format: 'esm', minify: { mangle: { keepNames: true } } } },
    { main: 'at the top', output: { format: 'cjs', minify: { mangle: { keepNames: true } } } },
    { main: 'by import()', output: { format: 'cjs' } },
  ] as const)('runs the right class, with main.ts importing it $main: $output', async (how) => {
    const cluster = await bundle({}, how.main, how.output);
    await cluster.event('listening');

    expect((await getJson(cluster.url, '/sums')).body).toEqual(['Two', true]);
    expect((await getJson(cluster.url, '/search')).body).toEqual(['cat', true]);
    expect(cluster.all('listening')).toHaveLength(1);
  });

  it('is refused for two classes of one name, with both places', async () => {
    const module = SOURCES['app.module']!.replace('[TwoSums]', '[OneSums, TwoSums]');
    const cluster = await bundle({ 'app.module': module }, 'at the top', { format: 'esm' });

    expect((await cluster.exited()).code, cluster.output).toBe(78);
    expect(cluster.all('failed')[0]!.message).toMatch(
      /two @CpuBound\(\) methods are called "Sums\.run" \(\S+\/main\.js:(?!(\d+):\d+ and \S+:\1:)\d+:\d+ and \S+\/main\.js:\d+:\d+\); give one a name of its own/,
    );
  });

  it.each(['esm', 'cjs'] as const)(
    'is refused with minified names, and runs with names of its own (%s)',
    async (format) => {
      const output = { format, keepNames: false, minify: true };
      const refused = await bundle({}, 'at the top', output);
      expect((await refused.exited()).code, refused.output).toBe(78);
      expect(refused.all('failed')[0]!.message).toMatch(
        /\w\.run has no name that metrics could show.*keepNames: true for esbuild/,
      );

      const named = {
        'library-one': libraryOf('One', `{ name: 'one' }`),
        'library-two': libraryOf('Two', `{ name: 'two' }`),
        table: SOURCES['table']!.replace('@CpuBound()', `@CpuBound({ name: 'search' })`),
      };
      const cluster = await bundle(named, 'by import()', output);
      await cluster.event('listening');
      expect((await getJson(cluster.url, '/sums')).body).toEqual(['Two', true]);
      expect((await getJson(cluster.url, '/search')).body).toEqual(['cat', true]);
    },
  );
});
