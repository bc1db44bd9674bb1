import { expect, it } from 'vitest';
import { ClusterProcess, NODE } from '../../support/cluster-process.js';
import { nodeFor } from '../../support/nodes.js';
import type { NestProject } from './nest-project.js';
import { expectEnding, expectServing } from './serving.js';

/** One row of the table of docs/development.md. */
export interface Start {
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

export function describeStarts(project: () => NestProject, starts: readonly Start[]): void {
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
