import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { NODE } from '../support/cluster-process.js';
import { runCommand } from '../support/run-command.js';
import { describeWith, SYSTEM_ENVIRONMENT } from '../support/system-packages.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const root = join(import.meta.dirname, '../..');
const SEED = '42';
const TIMEOUT_MS = 150_000;

/** Some faults are root's to make. CI is. */
const SKIPPED = process.env['CI'] !== 'true' && process.getuid?.() !== 0;

interface Verdict {
  readonly faults: readonly { readonly name: string; readonly count: number }[];
}

describeWith(['faketime', 'mount', 'prlimit'], 'chaos', () => {
  it.skipIf(SKIPPED)(
    'loses nothing but what a killed worker had begun',
    async () => {
      const json = join(temporaryDirectory(), 'chaos.json');
      const run = await runCommand(
        process.execPath,
        [
          'test/chaos/run.mjs',
          '--seconds=30',
          `--seed=${SEED}`,
          '--workers=2',
          // Each has a test of its own: timed/fatal-requests and thorough/removed-release.
          '--without=fatal,removed',
          '--node',
          NODE,
          '--json',
          json,
        ],
        { cwd: root, env: SYSTEM_ENVIRONMENT, timeoutMs: TIMEOUT_MS },
      );
      expect(run.code, `${run.stderr}${run.stdout}`).toBe(0);
      const { faults } = JSON.parse(readFileSync(json, 'utf8')) as Verdict;
      expect(faults.filter(({ count }) => count === 0)).toEqual([]);
    },
    TIMEOUT_MS,
  );
});
