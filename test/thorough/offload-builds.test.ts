import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ClusterProcess, type StartOptions, stopAll } from '../support/cluster-process.js';
import { type BuildOptions, CompiledApp, type Sources } from '../support/compiled-app.js';
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

const ROUTES = ['above', 'composed'] as const;

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

    for (const route of ROUTES) {
      const answer = await request(cluster.url, `/report/${route}/20`);
      expect({ status: answer.status, body: JSON.parse(answer.body) as unknown }).toEqual({
        status: 202,
        body: { threadId: inThread, given: [20] },
      });
      expect(answer.headers['x-order']).toBe(route);
    }
    // A method of a provider with dependencies.
    expect((await ask('/sum')).body).toEqual({ threadId: inThread, given: [6] });

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
