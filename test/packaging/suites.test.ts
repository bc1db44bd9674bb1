import { join } from 'node:path';
import { expect, it } from 'vitest';
import { npmEnvironment, runCommand } from '../support/run-command.js';

const root = join(import.meta.dirname, '../..');

/** Without the variables of the Vitest that runs this test, because the suite runs its own. */
const env = Object.fromEntries(
  Object.entries(npmEnvironment()).filter(([name]) => !/^(VITEST|TEST|NODE_ENV)/.test(name)),
);

// The other suites take longer.
it('keyv, a suite of others, finds nothing new', async () => {
  const { code, stdout, stderr } = await runCommand(
    process.execPath,
    [join(root, 'test/suites/keyv/run.mjs')],
    { cwd: root, env, timeoutMs: 220_000 },
  );
  expect([code, code === 0 ? '' : stdout + stderr]).toEqual([0, '']);
  expect(stdout).toMatch(/^cases \d{2,}, passed \d+, failed \d+$/m);
});
