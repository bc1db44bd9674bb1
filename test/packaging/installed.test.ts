import ts from 'typescript';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { getJson, request } from '../support/http-client.js';
import { MetricsPage } from '../support/metrics-page.js';
import { valuesOf } from './support/exported-names.js';
import { packed } from './support/tarball.js';
import { locked, TemporaryProject } from './support/temporary-project.js';

const NEST = [
  '@nestjs/common',
  '@nestjs/core',
  '@nestjs/platform-express',
  '@nestjs/terminus',
  'prom-client',
  'reflect-metadata',
  'rxjs',
];

/** An app as a user writes it, without the port, the host and the number of workers. */
const APP_MODULE = `
  import { Controller, Get, Module } from '@nestjs/common';
  import { ClusterModule, ClusterService } from 'nestjs-cluster';

  @Controller()
  class AppController {
    constructor(private readonly cluster: ClusterService) {}

    @Get('whoami')
    whoami() {
      return this.cluster.identity;
    }
  }

  @Module({ imports: [ClusterModule.forRoot()], controllers: [AppController] })
  export class AppModule {}
`;
const OPTIONS = `{ port: 0, host: '127.0.0.1', workers: 2 }`;
const CREATE_APP = `async () => {
  const { AppModule } = await import('./app.module.js');
  return NestFactory.create(AppModule);
}`;
/** As the compiler writes it; that the types are right is in types.test.ts. */
function compile(source: string, type: string, module: string): string {
  const options = {
    target: 'es2023',
    module,
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
  };
  const { options: compilerOptions } = ts.convertCompilerOptionsFromJson(options, '');
  const fileName = type === 'module' ? 'file.mts' : 'file.cts';
  return ts.transpileModule(source, { compilerOptions, fileName }).outputText;
}

const PROGRAMS = [
  {
    name: 'an ES module',
    type: 'module',
    module: 'nodenext',
    main: `
      import { NestFactory } from '@nestjs/core';
      import { ClusterModule } from 'nestjs-cluster';
      await ClusterModule.bootstrap(${CREATE_APP}, ${OPTIONS});
    `,
  },
  {
    name: 'CommonJS that turns every import into require()',
    type: 'commonjs',
    module: 'commonjs',
    main: `
      import { bootstrap } from 'nestjs-cluster/bootstrap';
      import { NestFactory } from '@nestjs/core';
      void bootstrap(${CREATE_APP}, ${OPTIONS});
    `,
  },
] as const;

let project: TemporaryProject;

beforeAll(async () => {
  project = await TemporaryProject.create();
  const tarball = packed();
  await project.install([tarball.path, ...locked(NEST)]);
});

afterEach(stopAll);
afterAll(() => project.remove());

describe.each(PROGRAMS)('$name', ({ name, type, module, main }) => {
  const folder = name.replaceAll(/\W+/g, '-');

  beforeAll(async () => {
    await project.write({
      [`${folder}/package.json`]: JSON.stringify({ type }),
      [`${folder}/app.module.js`]: compile(APP_MODULE, type, module),
      [`${folder}/main.js`]: compile(main, type, module),
    });
  });

  it('serves as a cluster and ends when it is asked to', async () => {
    const cluster = await ClusterProcess.start({
      program: project.path(folder, 'main.js'),
      cwd: project.directory,
    });

    expect(cluster.workerPids).toContain((await getJson(cluster.url, '/whoami')).body.pid);
    const health = await getJson(cluster.url, '/health');
    expect([health.status, health.body.details.cluster.ready]).toEqual([200, 2]);
    const metrics = await request(cluster.url, '/metrics');
    expect(metrics.status).toBe(200);
    expect(new MetricsPage(metrics.body).values('nestjs_cluster_workers_desired')).toEqual([2]);

    cluster.kill('SIGTERM');
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
    expect(cluster.survivors()).toEqual([]);
  });
});

describe('both ways to load it', () => {
  it('give the same classes and functions, and start nothing', async () => {
    await project.write({
      'load.cjs': `
        const load = async (specifier) => {
          const required = require(specifier);
          const imported = await import(specifier);
          const names = Object.keys(imported).sort();
          return { names, different: names.filter((name) => required[name] !== imported[name]) };
        };
        Promise.all(['nestjs-cluster', 'nestjs-cluster/bootstrap'].map(load)).then(
          ([main, bootstrap]) => {
            const shared = bootstrap.names.filter(
              (name) => require('nestjs-cluster')[name] === require('nestjs-cluster/bootstrap')[name],
            );
            console.log(JSON.stringify({ main, bootstrap, shared }));
          },
        );
      `,
    });

    const { code, stdout, stderr } = await project.node(
      // Node 22.12 still warns of require() of an ES module.
      '--disable-warning=ExperimentalWarning',
      'load.cjs',
    );

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const namesOf = (entry: string) =>
      valuesOf(project.path(`node_modules/nestjs-cluster/dist/${entry}.d.ts`));
    const [main, bootstrap] = [namesOf('index'), namesOf('bootstrap/index')];
    expect(JSON.parse(stdout)).toEqual({
      main: { names: main, different: [] },
      bootstrap: { names: bootstrap, different: [] },
      shared: bootstrap,
    });
  });
});
