import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ClusterProcess, type StartOptions, stopAll } from '../support/cluster-process.js';
import {
  type BuildOptions,
  CompiledApp,
  type Sources,
  typeErrors,
} from '../support/compiled-app.js';
import { getJson, request } from '../support/http-client.js';

const FILES = [
  'decorators',
  'where',
  'report.controller',
  'calculation',
  'app.module',
  'main',
  'plain',
] as const;

const SOURCES: Sources = Object.fromEntries(
  FILES.map((name) => [
    name,
    readFileSync(join(import.meta.dirname, `../fixtures/cpu-bound-app/${name}.ts`), 'utf8'),
  ]),
);

/** Has no `await` at the top level. */
const COMMONJS_SOURCES: Sources = {
  ...SOURCES,
  main: SOURCES['main']!.replace('\nawait ClusterModule', '\nvoid ClusterModule'),
};

const ROUTES = ['above', 'composed', 'by-hand'] as const;

interface Start {
  readonly name: string;
  readonly program?: 'main' | 'plain';
  readonly workers?: number;
  readonly env?: Readonly<Record<string, string>>;
}

interface Build extends BuildOptions {
  readonly name: string;
  readonly starts: readonly Start[];
}

const CLUSTER = { name: 'as a cluster' };
const FASTIFY = {
  name: 'as a cluster on Fastify, by forRootAsync()',
  env: { TEST_ADAPTER: 'fastify', TEST_ASYNC: '1' },
};
const STANDALONE = { name: 'with workers: 0', workers: 0 };
const PLAIN = { name: 'without bootstrap()', program: 'plain' } as const;

// Each start with both formats, each compiler with several starts, both Nests with two.
const BUILDS: readonly Build[] = [
  { name: 'tsc, ESM', starts: [CLUSTER, PLAIN] },
  { name: 'tsc, ESM, tslib', importHelpers: true, starts: [STANDALONE] },
  { name: 'tsc, CommonJS', format: 'commonjs', starts: [FASTIFY] },
  { name: 'tsc, CommonJS, tslib', format: 'commonjs', importHelpers: true, starts: [PLAIN] },
  { name: 'swc, ESM', compiler: 'swc', starts: [CLUSTER] },
  { name: 'swc, CommonJS', compiler: 'swc', format: 'commonjs', starts: [STANDALONE] },
  { name: 'Nest 11, tsc, ESM', nest: 11, starts: [FASTIFY] },
  {
    name: 'Nest 11, tsc, CommonJS, tslib',
    nest: 11,
    format: 'commonjs',
    importHelpers: true,
    starts: [CLUSTER],
  },
];

afterEach(stopAll);

function start(app: CompiledApp, { program = 'main', workers = 1, env = {} }: Start) {
  const options: StartOptions = {
    program: app.path(program),
    options: { workers },
    env: { CLUSTER_THREADS: '1', ...env },
    cwd: app.directory,
  };
  return program === 'main'
    ? ClusterProcess.start(options)
    : ClusterProcess.start({ ...options, options: { workers: 0 } });
}

describe.each(BUILDS)('@CpuBound() in an app built by $name', ({ starts, ...build }) => {
  let app: CompiledApp;

  beforeAll(() => {
    app = new CompiledApp(build.format === 'commonjs' ? COMMONJS_SOURCES : SOURCES, build);
  });

  afterAll(() => app.remove());

  it.each(starts)('runs its methods in a thread $name', async (how) => {
    const cluster = await start(app, how);
    const ask = (path: string) => getJson(cluster.url, path);
    const inThread = expect.toSatisfy((id: number) => id > 0, 'the id of a thread');

    // Pipes, metadata and guards are the same in other decorators.
    for (const route of ROUTES) {
      const answer = await request(cluster.url, `/report/${route}/20`);
      expect({ status: answer.status, body: JSON.parse(answer.body) as unknown }).toEqual({
        status: 202,
        body: { threadId: inThread, given: [20, route] },
      });
      expect(answer.headers['x-order']).toBe(route);
      expect((await ask(`/report/${route}/20?guard=closed`)).status).toBe(403);
    }
    // A method of a provider with dependencies.
    expect((await ask('/sum')).body).toEqual({ threadId: inThread, given: [6] });
    expect((await ask('/typed')).body).toEqual(['cat', 'abab', 42]);

    // A class of the main file.
    if (how.program === undefined) {
      expect((await ask('/main')).body).toEqual({ threadId: inThread, given: ['main'] });
    }
    expect((await ask(how.env !== undefined ? '/state' : '/health')).status).toBe(200);
    expect(cluster.lines.filter(({ level }) => level === 'error')).toEqual([]);
    // A thread that has imported the main file has started nothing.
    expect(cluster.all('listening')).toHaveLength(1);
  });
});

describe('the types of @CpuBound()', () => {
  const uses = `
    import { Calculation, Table } from './calculation.js';
    import { CpuBound } from 'nestjs-cluster';

    const calculation = new Calculation(new Table());
    export const name: string = await calculation.pick({ name: 'cat' }, 'name');
    export const text: string = await calculation.both('text');
    export const number: number = await calculation.both(1);

    export class Everything {
      @CpuBound() sync(n: number): number { return n; }
      @CpuBound({}) async promised(): Promise<void> {}
      @CpuBound({ name: 'a', timeoutMs: 1, abortOnDisconnect: false })
      generic<T>(value: T): T { return value; }
      @CpuBound() protected hidden(): void {}
    }
    export const same: number = new Everything().generic(1);
  `;
  const misuses = [
    "export const name: number = await calculation.pick({ name: 'cat' }, 'name');",
    'export const text: string = await calculation.both(1);',
    'await calculation.both(true);',
    "export class A { @CpuBound({ timeoutMs: '1' }) run() {} }",
    'export class B { @CpuBound({ timeout: 1 }) run() {} }',
    'export class C { @CpuBound() value = 1; }',
    '@CpuBound() export class D {}',
  ];

  it('are those of the method, generics and overloads with them, and refuse what is wrong', () => {
    const { main: _main, plain: _plain, ...sources } = SOURCES;
    const misuse = (line: string) => `
      import { CpuBound } from 'nestjs-cluster';
      import { Calculation, Table } from './calculation.js';
      export const calculation = new Calculation(new Table());
      export const decorate = CpuBound;
      ${line}`;
    const wrong = Object.fromEntries(misuses.map((line, i) => [`misuse-${i}`, misuse(line)]));

    const errors = typeErrors({ ...sources, ...wrong, uses });

    const files = errors.map((error) => error.split(':').slice(0, 2).join(':'));
    expect([...new Set(files)], errors.join('\n')).toEqual(
      Object.keys(wrong).map((name) => `${name}.ts:6`),
    );
  });
});
