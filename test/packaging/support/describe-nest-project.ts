import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ClusterProcess, stopAll } from '../../support/cluster-process.js';
import { eventually } from '../../support/eventually.js';
import { getJson, request } from '../../support/http-client.js';
import { MetricsPage } from '../../support/metrics-page.js';
import { describeOnEachNode } from '../../support/nodes.js';
import { NestProject } from './nest-project.js';

/** What holds for a project that the Nest CLI has made, and `more` of it. */
export function describeNestProject(
  major: 11 | 12,
  more: (project: () => NestProject) => void = () => {},
): void {
  describe(`a project that 'nest new' of Nest ${major} makes`, () => {
    let project: NestProject;

    beforeAll(async () => {
      project = await NestProject.create(major);
      const { code, stdout, stderr } = await project.run('build');
      expect(code, stdout + stderr).toBe(0);
    });

    afterEach(stopAll);
    afterAll(() => project.remove());

    describeOnEachNode(`Nest ${major}`, ({ path: node }) => {
      it.each(['test', 'test:e2e'])("runs its own tests as 'npm run %s' does", async (script) => {
        const { code, stdout, stderr } = await project.run(script, node);

        const output = stdout + stderr;
        expect(code, output).toBe(0);
        expect(output).toMatch(script === 'test' ? TWO_PASSED : FOUR_PASSED);
        expect(output).not.toContain('did not exit');
      });

      it('serves as a cluster', async () => {
        const cluster = await ClusterProcess.start({
          node,
          program: project.path('dist/main.js'),
          cwd: project.directory,
          env: { PORT: '0', CLUSTER_WORKERS: '2', CLUSTER_THREADS: '1' },
        });

        await cluster.event('started');

        const ask = async (path: string) => (await request(cluster.url, path)).body;
        expect(await ask('/')).toBe('Hello World!');
        // On a machine that is at work elsewhere the first thread may take longer than a call waits.
        const report = await eventually(
          'a thread',
          () => request(cluster.url, '/report'),
          (answer) => answer.status !== 503,
        );
        expect([report.status, report.body]).toEqual([200, 'thread']);
        const { status, body } = await getJson(cluster.url, '/health');
        expect([status, body.details.cluster.ready]).toEqual([200, 2]);
        const metrics = new MetricsPage(await ask('/metrics'));
        expect(metrics.values('nestjs_cluster_workers_desired')).toEqual([2]);

        cluster.kill('SIGTERM');
        expect(await cluster.exited()).toEqual({ code: 0, signal: null });
        expect(cluster.survivors()).toEqual([]);
      });
    });

    more(() => project);
  });
}

/** As Jest and Vitest count. */
const TWO_PASSED = /Tests:? +2 passed(?:, 2 total| \(2\))/;
const FOUR_PASSED = /Tests:? +4 passed(?:, 4 total| \(4\))/;
