import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { npmEnvironment, runCommand } from '../support/run-command.js';

const root = join(import.meta.dirname, '../..');

/** The suites of others that take some seconds, with their arguments. docs/proof.md names all. */
const QUICK = {
  keyv: [],
};

/** Without the variables of the Vitest that runs this test, because a suite may run its own. */
const env = Object.fromEntries(
  Object.entries(npmEnvironment()).filter(([name]) => !/^(VITEST|TEST|NODE_ENV)/.test(name)),
);

describe('the suites of others find nothing new:', () => {
  it.each(Object.entries(QUICK))('%s', async (name, args) => {
    const { code, stdout, stderr } = await runCommand(
      process.execPath,
      [join(root, 'test/suites', name, 'run.mjs'), ...args],
      { cwd: root, env, timeoutMs: 220_000 },
    );
    expect([code, code === 0 ? '' : stdout + stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^cases \d{2,}, passed \d+, failed \d+$/m);
  });
});
