import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ClusterProcess, stopAll } from '../../support/cluster-process.js';
import { request } from '../../support/http-client.js';
import { MetricsPage } from '../../support/metrics-page.js';
import { describeOnEachNode } from '../../support/nodes.js';
import { NestProject } from './nest-project.js';
import { expectEnding, expectServing } from './serving.js';
import { describeStarts, type Start } from './starts.js';

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
