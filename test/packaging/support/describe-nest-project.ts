import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ClusterProcess, NODE, stopAll } from '../../support/cluster-process.js';
import { getJson, request } from '../../support/http-client.js';
import { MetricsPage } from '../../support/metrics-page.js';
import { describeOnEachNode, nodeFor } from '../../support/nodes.js';
import { NestProject } from './nest-project.js';
import { eventually } from '../../support/eventually.js';

/** An app of a project that runs as a cluster of two; `where` its @CpuBound() method runs. */
async function expectServing(
  cluster: ClusterProcess,
  where: 'thread' | 'event loop',
): Promise<void> {
  await cluster.event('started');

  expect((await request(cluster.url, '/')).body).toBe('Hello World!');
  // On a machine that is at work elsewhere the first thread may take longer than a call waits.
  const report = await eventually(
    'a thread',
    () => request(cluster.url, '/report'),
    (answer) => answer.status !== 503,
  );
  expect([report.status, report.body]).toEqual([200, where]);
  const { status, body } = await getJson(cluster.url, '/health');
  expect([status, body.details.cluster.ready]).toEqual([200, 2]);
}

/** It ends when it is asked to, and leaves nothing. */
async function expectEnding(cluster: ClusterProcess): Promise<void> {
  cluster.kill('SIGTERM');
  expect(await cluster.exited()).toEqual({ code: 0, signal: null });
  expect(cluster.survivors()).toEqual([]);
}

/** One row of the table of docs/development.md. */
interface Start {
  readonly name: string;
  /** Before that: what it is built by, and what has to change. */
  readonly prepare?: (project: NestProject) => Promise<void>;
  readonly execArgv?: readonly string[];
  /** In the project. */
  readonly program: string;
  readonly args?: readonly string[];
  /** The major version of Node, if not the one under test. */
  readonly node?: 20 | 22;
  /** The message with which the start fails, if threads cannot load the app. */
  readonly refusal?: RegExp;
  /** Checks only the refusal: another row checks that the app serves without threads. */
  readonly onlyRefused?: boolean;
}

/** The class has its own file, but a thread cannot load TypeScript. */
export const NO_TYPESCRIPT =
  /a thread cannot import \S+\/src\/app\.service\.ts, which declares AppService\.report: .*tsx on Node 22 or later.* set CLUSTER_OFFLOAD=inline/;

function describeStarts(project: () => NestProject, starts: readonly Start[]): void {
  it.for(starts)('works as docs/development.md says: $name', async (start, context) => {
    const node = start.node === undefined ? NODE : nodeFor(start.node, context);
    await start.prepare?.(project());
    const run = (env: Record<string, string>) =>
      new ClusterProcess({
        node,
        execArgv: start.execArgv,
        program: project().path(start.program),
        args: start.args,
        cwd: project().directory,
        env: { PORT: '0', CLUSTER_WORKERS: '2', CLUSTER_THREADS: '1', ...env },
      });

    if (start.refusal !== undefined) {
      const refused = run({});
      expect((await refused.exited()).code, refused.output).toBe(78);
      expect(refused.all('failed')[0]?.message).toMatch(start.refusal);
      if (start.onlyRefused) return;
    }
    const cluster = run(start.refusal === undefined ? {} : { CLUSTER_OFFLOAD: 'inline' });
    await expectServing(cluster, start.refusal === undefined ? 'thread' : 'event loop');
    await expectEnding(cluster);
  });
}

/** The parts of a project's tests that differ between the versions of Nest. */
interface More {
  /** Packages that these parts need. */
  readonly packages: readonly string[];
  /** Declares the tests of `nest start --watch`. */
  readonly watch: (project: () => NestProject) => void;
  /** Other ways to build and to start it, in the order in which they are tried. */
  readonly starts: readonly Start[];
}

/** Declares the tests of a project that the Nest CLI has made. */
export function describeNestProject(major: 11 | 12, { packages, watch, starts }: More): void {
  describe(`a project that 'nest new' of Nest ${major} makes`, () => {
    let project: NestProject;

    beforeAll(async () => {
      project = await NestProject.create(major, packages);
      const { code, stdout, stderr } = await project.run('build');
      expect(code, stdout + stderr).toBe(0);
    });

    afterEach(stopAll);
    afterAll(() => project.remove());

    describeOnEachNode(`Nest ${major}`, ({ major: line, path: node }) => {
      const script = OWN_TESTS[major][line];
      if (script !== undefined) itRunsItsOwnTests(() => project, script, node);

      it('serves as a cluster', async () => {
        const cluster = new ClusterProcess({
          node,
          program: project.path('dist/main.js'),
          cwd: project.directory,
          env: { PORT: '0', CLUSTER_WORKERS: '2', CLUSTER_THREADS: '1' },
        });

        await expectServing(cluster, 'thread');
        const metrics = new MetricsPage((await request(cluster.url, '/metrics')).body);
        expect(metrics.values('nestjs_cluster_workers_desired')).toEqual([2]);

        await expectEnding(cluster);
      });
    });

    describe("'nest start --watch'", () => watch(() => project));
    describeStarts(() => project, starts);
  });
}

/**
 * The scripts that are run, by the major versions of Nest and Node. Each run of Jest or Vitest takes
 * many seconds, so each script runs on the oldest or on the newest Node, and on both with one of the two.
 */
const OWN_TESTS: Readonly<Record<11 | 12, Readonly<Record<number, string>>>> = {
  11: { 20: 'test', 26: 'test:e2e' },
  12: { 20: 'test:e2e', 26: 'test' },
};

function itRunsItsOwnTests(project: () => NestProject, script: string, node: string): void {
  it(`runs its own tests as 'npm run ${script}' does`, async () => {
    const { code, stdout, stderr } = await project().run(script, node);

    const output = stdout + stderr;
    expect(code, output).toBe(0);
    expect(output).toMatch(script === 'test' ? TWO_PASSED : FOUR_PASSED);
    expect(output).not.toContain('did not exit');
  });
}

/** As Jest and Vitest count. */
const TWO_PASSED = /Tests:? +2 passed(?:, 2 total| \(2\))/;
const FOUR_PASSED = /Tests:? +4 passed(?:, 4 total| \(4\))/;
