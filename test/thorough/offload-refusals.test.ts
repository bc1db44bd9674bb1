import { rolldown } from 'rolldown';
import { join } from 'node:path';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { ClusterProcess, type StartOptions, stopAll } from '../support/cluster-process.js';
import { type BuildOptions, CompiledApp, type Sources } from '../support/compiled-app.js';
import { freePorts } from '../support/free-ports.js';
import { getJson } from '../support/http-client.js';

/** As the README has it: what is refused is refused in the worker. */
const MAIN = `
  import { bootstrap } from 'nestjs-cluster/bootstrap';

  await bootstrap(async () => {
    await import('reflect-metadata');
    const { NestFactory } = await import('@nestjs/core');
    const { AppModule } = await import('./app.module.js');
    return NestFactory.create(AppModule, { logger: ['error', 'warn'] });
  }, JSON.parse(process.env['TEST_OPTIONS']!));
`;

const IMPORTS = `
  import { Body, Controller, Get, Injectable, Module, Param, Req, Scope } from '@nestjs/common';
  import { isMainThread, threadId } from 'node:worker_threads';
  import { ClusterModule, CpuBound } from 'nestjs-cluster';
`;

/** An app of one file with classes, which are all exported unless it says otherwise. */
function appOf(
  classes: string,
  {
    controllers = [],
    providers = [],
    forRoot = '',
  }: { controllers?: string[]; providers?: string[]; forRoot?: string },
): Sources {
  return {
    main: MAIN,
    'app.module': `${IMPORTS}
      ${classes}
      @Module({
        imports: [ClusterModule.forRoot(${forRoot})],
        controllers: [${controllers.join(', ')}],
        providers: [${providers.join(', ')}],
      })
      export class AppModule {}
    `,
  };
}

function compiled(sources: Sources, build: BuildOptions = {}): CompiledApp {
  const app = new CompiledApp(sources, build);
  onTestFinished(() => app.remove());
  return app;
}

const CLUSTER: StartOptions = { options: { workers: 1 } };

/** With `workers: 0`, unless it is told otherwise: it is quicker. */
function starting(app: CompiledApp, { options = {}, env = {}, ...rest }: StartOptions = {}) {
  return {
    program: app.path('main'),
    cwd: app.directory,
    options: { workers: 0, ...options },
    env: { CLUSTER_THREADS: '1', ...env },
    ...rest,
  };
}

/** Starts what cannot work. @returns the one line about it, with `<app>` for the directory, without line numbers and frames of libraries. */
async function refusal(app: CompiledApp, start: StartOptions = {}): Promise<string> {
  const cluster = new ClusterProcess(starting(app, start));
  const exit = await cluster.exited();
  expect(exit, cluster.output).toEqual({ code: 78, signal: null });
  const failed = cluster.all('failed');
  expect(failed, cluster.output).toHaveLength(1);
  expect(cluster.all('listening')).toEqual([]);
  expect(cluster.survivors()).toEqual([]);
  return failed[0]!.message
    .replaceAll(app.directory, '<app>')
    .replace(/(\.\w+):\d+:\d+/g, '$1')
    .replace(/ at \S+ \(\S*\/node_modules\/\S*\)/g, '');
}

/** The one line for several problems. */
function together(...problems: string[]): string {
  return `giving up (exit code 78): @CpuBound() cannot work here: ${problems.join(' | ')}`;
}

afterEach(stopAll);

/** The other refusals are unit tests: unit/offload/offload-explorer and offload-refusals. */
describe('what a look at the classes shows', () => {
  it('is refused in one message, once for each method, with workers: 0 in the same words', async () => {
    const app = compiled(
      appOf(
        `@Controller('c')
        export class Connection {
          @CpuBound() @Get('req') req(@Req() _request: unknown) {}
          @CpuBound() @Get('fine') fine(@Param('a') _a: string, @Body() _body: unknown) {}
        }
        @Injectable({ scope: Scope.REQUEST })
        export class PerRequest {
          @CpuBound() run() {}
        }`,
        { controllers: ['Connection'], providers: ['PerRequest'] },
      ),
    );
    const message = together(
      'Connection.req takes @Req(), which cannot leave the event loop; ' +
        'take what it needs by @Param(), @Query(), @Body() or @Headers(), and leave the response to Nest',
      'PerRequest.run belongs to a class with an instance for each request or each consumer (scope REQUEST or TRANSIENT, its own or that of something injected); ' +
        'move the method to a provider of default scope, and pass what it needs of the request as arguments',
    );
    expect(await refusal(app, CLUSTER)).toBe(message);
    expect(await refusal(app)).toBe(message);
  });
});

describe('what only a thread can tell', () => {
  it('does not keep a ready worker from being healthy meanwhile', async () => {
    const app = compiled(
      appOf(
        `if (!isMainThread) await new Promise((resolve) => setTimeout(resolve, 3_000));
        @Injectable()
        export class Reports { @CpuBound() async run() {} }`,
        { providers: ['Reports'] },
      ),
    );
    const port = await freePorts(1);
    const cluster = new ClusterProcess(starting(app, { options: { workers: 1, port } }));
    await cluster.event('worker-ready');

    const { status, body } = await getJson(`http://127.0.0.1:${port}`, '/health');

    expect(status).toBe(200);
    expect(body.details.cluster).toMatchObject({ ready: 1, workers: [{ state: 'ready' }] });
    expect(cluster.all('listening')).toEqual([]);
  });

  it('names every file and class that threads cannot use, and what a look shows, in one message', async () => {
    const app = compiled({
      ...appOf(`import { Thrower } from './thrower.js'; import * as others from './others.js';`, {
        providers: ['Thrower', 'others.makeLocal()', '...others.providers'],
      }),
      thrower: `${IMPORTS}
        if (!isMainThread) throw new Error('no threads here');
        @Injectable()
        export class Thrower { @CpuBound() run() {} }
      `,
      others: `${IMPORTS}
        @Injectable()
        class Hidden { @CpuBound() run() {} }

        export function makeLocal() {
          @Injectable()
          class Local { @CpuBound() run() {} @CpuBound() again() {} }
          return Local;
        }

        @Injectable()
        export class Builder {
          constructor() {
            if (!isMainThread) throw new TypeError('not built in threads');
          }
          @CpuBound() run() {}
        }

        @Injectable()
        export class Fine { @CpuBound() run() {} }

        @Injectable()
        export class Looked { @CpuBound() at(@Req() _request: unknown) {} }

        export const providers = [Hidden, Builder, Fine, Looked];
      `,
    });

    expect(await refusal(app, CLUSTER)).toBe(
      together(
        'Looked.at takes @Req(), which cannot leave the event loop; take what it needs by @Param(), @Query(), @Body() or @Headers(), and leave the response to Nest',
        'a thread cannot import <app>/thrower.js, which declares Thrower.run: Error: no threads here at file://<app>/thrower.js. ' +
          `The code that the file runs at import must work in a thread too; else move the class to a file of its own, or ${INLINE}`,
        undeclared('Local.run, Local.again', 'Local', 'others'),
        'a thread has imported <app>/others.js, but cannot make an instance of Builder for Builder.run: TypeError: not built in threads at new Builder (file://<app>/others.js). ' +
          'Its dependencies have to be provided by offload.module, and its constructor has to work in a thread too',
      ),
    );
  });

  it.each(['esm', 'commonjs'] as const)(
    'refuses a bundle whose classes are declared only where the app is created (%s)',
    async (format) => {
      const app = compiled(appOf(REPORTS, { controllers: ['Reports'], providers: ['Sums'] }));
      // CommonJS has no `await` at the top level.
      if (format === 'commonjs')
        app.add({ main: MAIN.replace('await bootstrap', 'void bootstrap') });
      await bundle(app, format, /^[^./]/);

      expect(await refusal(app)).toBe(
        together(
          undeclared('Reports.run', 'Reports', 'main'),
          undeclared('Sums.run', 'Sums', 'main'),
        ),
      );
    },
  );

  it('refuses files that a hook of the main thread compiles on the fly', async () => {
    const source = appOf(REPORTS, { controllers: ['Reports'], providers: ['Sums'] });
    const app = compiled({}, { format: 'commonjs' });
    app.write('report.ts', `${source['app.module']}`);
    app.write(
      'main.js',
      `
      const ts = require('typescript');
      require.extensions['.ts'] = (module, path) => {
        const source = require('node:fs').readFileSync(path, 'utf8');
        module._compile(ts.transpileModule(source, { compilerOptions: {
          module: 'commonjs', target: 'es2022', experimentalDecorators: true, emitDecoratorMetadata: true,
        }}).outputText, path);
      };
      require('reflect-metadata');
      const { NestFactory } = require('@nestjs/core');
      require('nestjs-cluster/bootstrap').bootstrap(
        () => NestFactory.create(require('./report.ts').AppModule, { logger: false }),
        JSON.parse(process.env.TEST_OPTIONS),
      );
      `,
    );

    // Why exactly depends on what this Node makes of TypeScript.
    const message = (await refusal(app)).replace(/(?<=Sums\.run: ).*?(?=\. It is)/, '<reason>');
    expect(message).toBe(
      together(
        'a thread cannot import <app>/report.ts, which declares Reports.run, Sums.run: <reason>. ' +
          `It is TypeScript, and threads run what Node can: start the app from the output of tsc or SWC, or by a loader that works in threads (tsx on Node 22 or later), or ${INLINE}`,
      ),
    );
  });

  it('refuses a bundle with nestjs-cluster in it', async () => {
    const app = compiled(appOf(REPORTS, { controllers: ['Reports'] }));
    await bundle(app, 'esm', /^(?!\.|\/|nestjs-cluster)/);

    expect(await refusal(app)).toBe(
      together(
        "nestjs-cluster is part of a bundle, without the files that it runs beside the app; leave it and Nest out of the bundle (packages: 'external' for esbuild, externals: [nodeExternals()] for webpack and rspack) and install them where the app runs, or set CLUSTER_OFFLOAD=inline",
      ),
    );
  });

  it('refuses a file that ends the thread which imports it', async () => {
    const app = compiled(
      appOf(`if (!isMainThread) process.exit(3); ${REPORTS}`, { controllers: ['Reports'] }),
    );

    expect(await refusal(app, CLUSTER)).toBe(
      together(
        'a thread ended while it loaded <app>/app.module.js (Error: worker exited with code: 3); the code that runs at import must not end it: no process.exit() there',
      ),
    );
  });

  it('starts all of that with CLUSTER_OFFLOAD=inline', async () => {
    const app = compiled(appOf(REPORTS, { controllers: ['Reports'], providers: ['Sums'] }));
    await bundle(app, 'esm', /^[^./]/);

    const cluster = await ClusterProcess.start(
      starting(app, { env: { CLUSTER_OFFLOAD: 'inline' } }),
    );

    expect((await getJson(cluster.url, '/reports')).body).toEqual({ threadId: 0 });
  });
});

const REPORTS = `
  @Controller('reports')
  export class Reports { @CpuBound() @Get() run() { return { threadId }; } }
  @Injectable()
  export class Sums { @CpuBound() async run() { return 1; } }
`;

/** Puts an app into one file, as its user's bundler would. */
async function bundle(app: CompiledApp, format: 'esm' | 'commonjs', external: RegExp) {
  const build = await rolldown({
    input: app.path('main'),
    external,
    platform: 'node',
    cwd: app.directory,
  });
  const { output } = await build.generate({
    format: format === 'esm' ? 'esm' : 'cjs',
    codeSplitting: false,
  });
  await build.close();
  if (format === 'commonjs') app.write('package.json', '{"type":"commonjs"}');
  app.write('main.js', output[0].code);
}

const INLINE =
  'set CLUSTER_OFFLOAD=inline to run @CpuBound() methods on the event loop, as tests do';

function undeclared(tasks: string, className: string, file: string): string {
  return (
    `a thread has imported <app>/${file}.js, but the import did not declare the class ${className} with ${tasks}. ` +
    `Declare the class at the top level of its file, not in a function. If a bundler made the file, main.ts decides: import the app's module at the top of main.ts, or give bootstrap() a function that only imports a file, () => import('./app.js'); or ${INLINE}`
  );
}

describe('offload.module', () => {
  const USER = `
    @Injectable()
    export class Table {}
    @Injectable()
    export class WithTable {
      constructor(readonly table: Table) {}
      @CpuBound() run() {}
    }
  `;
  const providers = ['Table', 'WithTable'];
  const forRoot = '{ offload: { module: TasksModule } }';

  it('is refused with what Nest says where it lacks a provider', async () => {
    const app = compiled(
      appOf(`${USER} @Module({ providers: [WithTable] }) export class TasksModule {}`, {
        providers,
        forRoot,
      }),
    );

    expect(await refusal(app)).toBe(
      together(
        "offload.module (TasksModule) cannot be built in a thread: Error: Nest can't resolve dependencies of the WithTable (?). Please make sure that the argument Table at index [0] is available in the TasksModule module.; what it provides must work there too (needed by WithTable.run)",
      ),
    );
  });

  it('is refused with what a provider of it throws in a thread', async () => {
    const app = compiled(
      appOf(
        `${USER}
        const connection = {
          provide: 'CONNECTION',
          useFactory: () => {
            if (!isMainThread) throw new RangeError('too many connections');
          },
        };
        @Module({ providers: [Table, WithTable, connection] })
        export class TasksModule {}`,
        { providers, forRoot },
      ),
    );

    expect(await refusal(app)).toBe(
      together(
        'offload.module (TasksModule) cannot be built in a thread: RangeError: too many connections at InstanceWrapper.useFactory [as metatype] (file://<app>/app.module.js); what it provides must work there too (needed by WithTable.run)',
      ),
    );
  });

  it('is refused where it provides neither the class nor what that asks for', async () => {
    const app = compiled(
      appOf(`${USER} @Module({}) export class TasksModule {}`, { providers, forRoot }),
    );

    expect(await refusal(app)).toContain("Nest can't resolve dependencies of the WithTable (?).");
  });

  it.each(['export ', ''])(
    'is found by its export where no thread calls forRoot() (%sclass)',
    async (exported) => {
      const app = compiled({
        main: MAIN,
        'app.module': `${IMPORTS}
          import { makeRoot } from './root.js';
          import { Table, WithTable } from './user.js';
          @Module({ imports: [makeRoot()], providers: [Table, WithTable] })
          export class AppModule {}
        `,
        user: `${IMPORTS} ${USER}`,
        root: `${IMPORTS}
          import { Table, WithTable } from './user.js';
          @Module({ providers: [Table, WithTable] })
          ${exported} class TasksModule {}
          export function makeRoot() {
            return ClusterModule.forRoot(${forRoot});
          }
        `,
      });

      if (exported) {
        const cluster = await ClusterProcess.start(starting(app));
        expect((await getJson(cluster.url, '/health')).status).toBe(200);
        return;
      }
      expect(await refusal(app)).toBe(
        together(
          'offload.module (TasksModule) cannot be found by a thread: it has imported <app>/root.js, which calls forRoot(), ' +
            'but forRoot() was not called meanwhile. Call it where a @Module() is declared, or export TasksModule from that file (needed by WithTable.run)',
        ),
      );
    },
  );

  it('is refused in what the factory of forRootAsync() makes', async () => {
    const { main, 'app.module': module } = appOf(
      `${USER} @Module({ providers: [Table, WithTable] }) export class TasksModule {}`,
      { providers, forRoot: `{ useFactory: () => (${forRoot}) }` },
    );
    const app = compiled({
      main: main!,
      'app.module': module!.replace('forRoot(', 'forRootAsync('),
    });

    expect(await refusal(app, CLUSTER)).toBe(
      'giving up (exit code 78): invalid module options: offload.module is in the options that forRootAsync() gets late, ' +
        'which threads never get; set offload: { module } in forRootAsync() itself',
    );
  });
});

describe('the environment', () => {
  it('is refused before anything is forked', async () => {
    const app = compiled(appOf(REPORTS, { controllers: ['Reports'] }));
    const env = { CLUSTER_OFFLOAD: 'thread', CLUSTER_THREADS: '0' };

    expect(await refusal(app, { ...CLUSTER, env })).toBe(
      "giving up (exit code 78): invalid environment: CLUSTER_OFFLOAD: \"thread\" is not allowed; expected one of 'threads', 'inline' | CLUSTER_THREADS: 0 is not allowed; expected 'auto' or a whole number from 1 to 256",
    );
  });
});

const PLAIN_APP = `
  import 'reflect-metadata';
  import { NestFactory } from '@nestjs/core';
  ${IMPORTS}
  console.log('started in thread ' + threadId);
  @Controller()
  export class Reports { @CpuBound() @Get() run() {} }
  @Module({ imports: [ClusterModule.forRoot()], controllers: [Reports] })
  export class AppModule {}
  async function start() {
    const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] });
    await app.listen(0, '127.0.0.1');
    console.log('listening in thread ' + threadId);
  }
  void start();
`;

describe('a class in the file that starts a plain Nest app', () => {
  it.each([
    { start: 'node main.js', program: 'main.js', format: 'esm' },
    { start: 'node main, as the scripts of "nest new" do', program: 'main', format: 'commonjs' },
    { start: 'node main, as the scripts of "nest new" do', program: 'main', format: 'esm' },
  ] as const)(
    'is refused, and no thread starts a second server ($start, $format)',
    async ({ program, format }) => {
      const app = compiled({ main: PLAIN_APP }, { format });

      const cluster = new ClusterProcess(starting(app, { program: join(app.directory, program) }));

      expect(await cluster.exited(), cluster.output).toEqual({ code: 1, signal: null });
      expect(cluster.output.replaceAll(app.directory, '<app>')).toContain(
        'ClusterConfigurationError: @CpuBound() cannot work here: Reports.run is declared in <app>/main.js, which starts the app: ' +
          'a thread that imports it would start another; ' +
          'declare the class in a file of its own, or start the app by ClusterModule.bootstrap()',
      );
      expect(cluster.output.match(/started in thread \d+/g)).toEqual(['started in thread 0']);
      expect(cluster.output).not.toContain('listening');
    },
  );

  it('is not imported by a thread that does not find a class of another file', async () => {
    const main = PLAIN_APP.replace(/@Controller\(\)[^]*?\n/, '')
      .replace('import', `import { makeReports } from './reports.js';\n import`)
      .replace('[Reports]', '[makeReports()]');
    const reports = `${IMPORTS}
      export function makeReports() {
        @Controller()
        class Reports { @CpuBound() @Get() run() {} }
        return Reports;
      }`;
    const cluster = new ClusterProcess(starting(compiled({ main, reports })));

    expect(await cluster.exited(), cluster.output).toEqual({ code: 1, signal: null });
    expect(cluster.output).toContain('but the import did not declare the class Reports');
    expect(cluster.output.match(/started in thread \d+/g)).toEqual(['started in thread 0']);
  });

  it('runs on the event loop with CLUSTER_OFFLOAD=inline', async () => {
    const app = compiled({ main: PLAIN_APP });

    const cluster = new ClusterProcess(starting(app, { env: { CLUSTER_OFFLOAD: 'inline' } }));

    await cluster.until('it listens', () => cluster.output.includes('listening in thread 0'));
  });
});
