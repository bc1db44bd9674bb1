import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { ClusterProcess, type StartOptions, stopAll } from '../support/cluster-process.js';
import { CompiledApp, type Sources } from '../support/compiled-app.js';

// The words of each refusal: unit/offload/offload-explorer and thread-pool.

afterEach(stopAll);

const IMPORTS = `
  import { Controller, Get, Injectable, Module, Req } from '@nestjs/common';
  import { isMainThread, threadId } from 'node:worker_threads';
  import { ClusterModule, CpuBound } from 'nestjs-cluster';
`;

/** A file with a class that a thread does not see. */
const LOCAL = `${IMPORTS}
  export function makeLocal() {
    @Injectable()
    class Local { @CpuBound() run() {} }
    return Local;
  }
`;

function start(sources: Sources, program: string, options: StartOptions['options'] = {}) {
  const app = new CompiledApp(sources);
  return new ClusterProcess({ program: join(app.directory, program), cwd: app.directory, options });
}

it('everything that cannot work is refused in one message, before the cluster is ready', async () => {
  const sources = {
    main: `
      import { bootstrap } from 'nestjs-cluster/bootstrap';
      await bootstrap(async () => {
        await import('reflect-metadata');
        const { NestFactory } = await import('@nestjs/core');
        const { AppModule } = await import('./app.module.js');
        return NestFactory.create(AppModule, { logger: ['error', 'warn'] });
      }, JSON.parse(process.env['TEST_OPTIONS']!));
    `,
    'app.module': `${IMPORTS}
      import { makeLocal } from './local.js';
      import { root, Table, WithTable } from './root.js';
      import { Thrower } from './thrower.js';
      @Controller('c')
      class Looked {
        @CpuBound() @Get() at(@Req() _request: unknown) {}
      }
      @Module({
        imports: [root],
        controllers: [Looked],
        providers: [Table, WithTable, Thrower, makeLocal()],
      })
      export class AppModule {}
    `,
    local: LOCAL,
    root: `${IMPORTS}
      @Injectable()
      export class Table {}
      @Injectable()
      export class WithTable {
        constructor(readonly table: Table) {}
        @CpuBound() run() {}
      }
      @Module({ providers: [WithTable] })
      class ThreadModule {}
      export const root = ClusterModule.forRoot({ offload: { module: ThreadModule } });
    `,
    thrower: `${IMPORTS}
      if (!isMainThread) throw new Error('no threads here');
      @Injectable()
      export class Thrower { @CpuBound() run() {} }
    `,
  };
  for (const workers of [0, 1]) {
    const cluster = start(sources, 'main.js', { workers });
    expect(await cluster.exited(), cluster.output).toEqual({ code: 78, signal: null });
    const messages = cluster.all('failed').map(({ message }) => message);
    expect(messages).toEqual([
      expect.stringMatching(/^giving up \(exit code 78\): @CpuBound\(\) /),
    ]);
    expect(messages[0]!.split(' | ')).toEqual([
      expect.stringContaining('cannot work here: Looked.at takes @Req()'),
      expect.stringMatching(
        /^a thread cannot initialise offload\.module \(ThreadModule\): .*WithTable \(\?\).*\(needed by WithTable\.run\)$/,
      ),
      expect.stringMatching(/^a thread cannot import \S+thrower\.js, .*Error: no threads here/),
      expect.stringContaining('the import did not declare the class Local with Local.run'),
    ]);
    expect([cluster.all('listening'), cluster.survivors()]).toEqual([[], []]);
  }
});

it('a class in the file that starts a plain Nest app is refused, and no thread imports this file', async () => {
  const main = `
    import 'reflect-metadata';
    import { NestFactory } from '@nestjs/core';
    ${IMPORTS}
    import { makeLocal } from './local.js';
    console.log('started in thread ' + threadId);
    @Controller()
    export class Reports { @CpuBound() @Get() run() {} }
    @Module({
      imports: [ClusterModule.forRoot()],
      controllers: [Reports],
      providers: [makeLocal()],
    })
    export class AppModule {}
    const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] });
    await app.listen(0, '127.0.0.1');
  `;
  // Without the extension, as in the scripts of "nest new".
  const cluster = start({ main, local: LOCAL }, 'main');

  expect(await cluster.exited(), cluster.output).toEqual({ code: 1, signal: null });
  expect(cluster.output).toMatch(
    /cannot work here: Reports\.run is declared in \S+\/main\.js, which starts the app: .* \| a thread has imported \S+\/local\.js, but the import did not declare the class Local/,
  );
  expect(cluster.output.match(/started in thread \d+/g)).toEqual(['started in thread 0']);
});
