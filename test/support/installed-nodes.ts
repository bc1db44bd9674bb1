import { spawnSync } from 'node:child_process';
import { delimiter } from 'node:path';
import { NODE_SENSITIVE } from '../projects.js';

/** Paths of the Node that runs vitest and of the Nodes in `TEST_NODES`, by major version. */
export function installedNodes(): ReadonlyMap<number, string> {
  const paths = (process.env['TEST_NODES'] ?? '').split(delimiter).filter(Boolean);
  return new Map([process.execPath, ...paths].map((path) => [majorOf(path), path]));
}

/** Installed Nodes with tests of their own ({@link NODE_SENSITIVE}), but not vitest's Node. */
export function sensitiveNodes(): ReadonlyMap<number, string> {
  return new Map(
    [...installedNodes()].filter(
      ([major, path]) => path !== process.execPath && NODE_SENSITIVE.has(major),
    ),
  );
}

function majorOf(path: string): number {
  const { stdout, error } = spawnSync(path, ['--version'], { encoding: 'utf8' });
  if (error !== undefined) throw new Error(`TEST_NODES: ${path} does not run`, { cause: error });
  return Number(/^v(\d+)/.exec(stdout)?.[1]);
}
