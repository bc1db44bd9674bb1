import { type OutputOptions, rolldown } from 'rolldown';
import { afterEach, describe, expect, it } from 'vitest';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { CompiledApp, type Sources } from '../support/compiled-app.js';
import { getJson } from '../support/http-client.js';

const NEST = `
  import { Controller, Get, Injectable, Module } from '@nestjs/common';
  import { threadId } from 'node:worker_threads';
  import { ClusterModule, CpuBound } from 'nestjs-cluster';
`;

/** Two classes of one name, of which the app provides one. */
const libraryOf = (answer: string, options: string) => `${NEST}
  @Injectable()
  class Sums {
    @CpuBound(${options}) async run() { return ['${answer}', threadId > 0]; }
  }
  export { Sums as ${answer}Sums };
`;

const SOURCES: Sources = {
  'library-one': libraryOf('One', `{ name: 'one' }`),
  'library-two': libraryOf('Two', ''),
  table: `${NEST}
    @Injectable()
    export class Table { readonly words = ['cat']; }
    @Injectable()
    class Search {
      constructor(readonly table: Table) {}
      @CpuBound({ name: 'search' }) async find() { return [...this.table.words, threadId > 0]; }
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
  'in a function': `
    import { bootstrap } from 'nestjs-cluster/bootstrap';
    void bootstrap(async () => (await import('./app.js')).createApp(), ${OPTIONS});
  `,
};

/** Bundles an app into one file without source maps, and starts it. */
async function start(
  main: keyof typeof MAINS,
  output: OutputOptions = {},
  { external = /^[^./]/, env = {} }: { external?: RegExp; env?: Record<string, string> } = {},
): Promise<ClusterProcess> {
  const app = new CompiledApp({ ...SOURCES, main: MAINS[main] });
  const input = app.path('main');
  const build = await rolldown({ input, external, platform: 'node', cwd: app.directory });
  const made = await build.generate({ keepNames: true, codeSplitting: false, ...output });
  await build.close();
  const type = output.format === 'cjs' ? 'commonjs' : 'module';
  app.write('package.json', JSON.stringify({ type }));
  app.write('main.js', made.output[0].code);
  return new ClusterProcess({
    program: input,
    cwd: app.directory,
    options: { workers: 0 },
    env: { CLUSTER_THREADS: '1', ...env },
  });
}

async function refusal(cluster: ClusterProcess): Promise<string> {
  expect((await cluster.exited()).code, cluster.output).toBe(78);
  return cluster.all('failed')[0]!.message;
}

afterEach(stopAll);

describe('@CpuBound() in an app that is one file', () => {
  it.each([
    { main: 'at the top', output: { format: 'esm' } },
    { main: 'by import()', output: { format: 'esm', minify: true, keepNames: false } },
    { main: 'at the top', output: { format: 'cjs', minify: true, keepNames: false } },
    { main: 'by import()', output: { format: 'cjs' } },
  ] as const)('runs the right class, with main.ts importing it $main: $output', async (how) => {
    const cluster = await start(how.main, how.output);
    await cluster.event('listening');

    expect((await getJson(cluster.url, '/sums')).body).toEqual(['Two', true]);
    expect((await getJson(cluster.url, '/search')).body).toEqual(['cat', true]);
    expect(cluster.all('listening')).toHaveLength(1);
  });

  it('is refused if main.ts declares the classes only when it creates the app, save inline', async () => {
    const message = await refusal(await start('in a function'));
    expect(message).toMatch(
      /\/main\.js, but the import did not declare the class Sums with Sums\./,
    );

    const inline = await start('in a function', {}, { env: { CLUSTER_OFFLOAD: 'inline' } });
    await inline.event('listening');
    expect((await getJson(inline.url, '/sums')).body).toEqual(['Two', false]);
  });

  it('is refused if nestjs-cluster is a part of the file', async () => {
    const external = /^(?!\.|\/|nestjs-cluster)/;
    expect(await refusal(await start('at the top', {}, { external }))).toContain(
      "nestjs-cluster was bundled without the files that it runs beside the app; leave it and Nest out of the bundle (packages: 'external' for esbuild, externals: [nodeExternals()] for webpack and rspack) and install them where the app runs, or set CLUSTER_OFFLOAD=inline",
    );
  });
});
