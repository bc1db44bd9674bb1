import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { CompiledApp } from '../support/compiled-app.js';

// The words of each refusal: unit/offload/offload-explorer and thread-pool. That a refusal ends the
// start of a cluster with 78: test/packaging/support/describe-nest-project.ts.

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
  const { directory } = new CompiledApp({ main, local: LOCAL });
  const cluster = new ClusterProcess({ program: join(directory, 'main'), cwd: directory });

  expect(await cluster.exited(), cluster.output).toEqual({ code: 1, signal: null });
  expect(cluster.output).toMatch(
    /cannot work here: Reports\.run is declared in \S+\/main\.js, which starts the app: .* \| a thread has imported \S+\/local\.js, but the import did not declare the class Local/,
  );
  expect(cluster.output.match(/started in thread \d+/g)).toEqual(['started in thread 0']);
});
