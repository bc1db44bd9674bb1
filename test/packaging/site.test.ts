import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { npmEnvironment, runCommand } from '../support/run-command.js';

const root = join(import.meta.dirname, '../..');

/** VitePress refuses a link that leads to no page. */
it('the site of the documentation is built', async () => {
  const packages = join(root, 'docs/node_modules');
  expect(existsSync(packages), 'node test/bench/install.mjs docs').toBe(true);
  const built = await runCommand('npm', ['run', 'docs:build', '--prefix', 'docs'], {
    cwd: root,
    env: npmEnvironment(),
    timeoutMs: 200_000,
  });
  expect(built, built.stdout + built.stderr).toMatchObject({ code: 0 });
});
