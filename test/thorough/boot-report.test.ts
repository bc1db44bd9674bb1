import { join } from 'node:path';
import { expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { NODE, PROGRAMS } from '../support/cluster-process.js';
import { MAIN } from '../support/command-line.js';
import { plainEnvironment, runCommand } from '../support/run-command.js';

const root = join(import.meta.dirname, '../..');

function boot(args: readonly string[], name: string) {
  const env = { ...plainEnvironment(), ...behaviour(name) };
  return runCommand(NODE, [MAIN, 'boot', ...args], { cwd: root, env });
}

it('prints tables, and what the compile cache saved', async () => {
  const { code, stdout, stderr } = await boot([PROGRAMS.app, '--limit', '3'], 'slow-boot');

  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/^test\/fixtures\/app\.mjs was ready after \d+ ms, with Node v/);
  expect(stdout.split('package or file\n')[1]!.split('\n\n')[0]!.split('\n')).toHaveLength(3);
  expect(stdout).toMatch(/\n +\d+ {2}SlowToInit\.onModuleInit\(\) \(AppModule\)\n/);
  expect(stdout).toMatch(
    stdout.includes('with Node v20.')
      ? /\nThere was no compile cache: .*\n$/
      : /\nThe compile cache save.* ms\.\n$/,
  );
});

it('fails with the last lines of an app that does not start', async () => {
  const { code, stdout, stderr } = await boot([PROGRAMS.app], 'throws-at-import');

  expect({ code, stdout }).toEqual({ code: 70, stdout: '' });
  expect(stderr).toMatch(/^error: the app does not start: DATABASE_URL is not set/);
});
