import { copyFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, type TestContext } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, PROGRAMS, stopAll } from '../support/cluster-process.js';
import { MAIN } from '../support/command-line.js';
import { filesBelow } from '../support/doctor.js';
import { nodeFor } from '../support/nodes.js';
import { type CommandResult, plainEnvironment, runCommand } from '../support/run-command.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const root = join(import.meta.dirname, '../..');
const PLAIN = join(root, 'test/fixtures/plain.mjs');

/** Runs `nestjs-cluster warm` to its end, on a Node that has a compile cache. */
function warm(
  context: TestContext,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<CommandResult> {
  const environment = { ...plainEnvironment(), ...env };
  return runCommand(nodeFor(24, context), [MAIN, 'warm', ...args], { cwd: root, env: environment });
}

/** A project with a fixture as its main file, and the directory for its compile cache. */
function project(fixture = 'bare') {
  const directory = temporaryDirectory();
  const modules = join(directory, 'node_modules');
  const main = join(directory, 'main.mjs');
  mkdirSync(modules);
  symlinkSync(root, join(modules, 'nestjs-cluster'));
  for (const name of ['@nestjs', 'reflect-metadata']) {
    symlinkSync(join(root, 'node_modules', name), join(modules, name));
  }
  copyFileSync(join(root, `test/fixtures/${fixture}.mjs`), main);
  const parent = join(modules, '.cache');
  return { directory, main, parent, cache: join(parent, 'nestjs-cluster') };
}

describe('nestjs-cluster warm', () => {
  afterEach(stopAll);

  it('fills the cache, so that a cluster compiles nothing at its start', async (context) => {
    const { main, parent, cache } = project();
    mkdirSync(parent, { mode: 0o755 }); // by another tool

    const { code, stdout, stderr } = await warm(context, [main]);

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^\d+ files, \d+\.\d MB in \S+; the app became ready\n$/);
    expect(stdout).toContain(` in ${cache};`);
    const files = filesBelow(cache);
    const cluster = await ClusterProcess.start({
      program: main,
      node: nodeFor(24, context),
      options: { workers: 1, doctor: false },
    });
    cluster.kill('SIGTERM');
    await cluster.exited();
    // Node writes a file that is missing or cannot be used.
    expect(filesBelow(cache)).toEqual(files);
  });

  it.for([
    { app: 'init-rejects', args: [], why: /^does not start: the database does not answer$/ },
    { app: 'throws-at-import', args: [], why: /^does not start: / },
    { app: 'never-ready', args: ['--timeout', '2'], why: /^was not ready within 2 s$/ },
    { app: 'hook-kills', args: [], why: null },
  ])('fills the cache with an app whose behaviour is $app', async ({ app, args, why }, context) => {
    const { main, cache } = project('app');

    const { code, stdout } = await warm(context, [main, '--json', ...args], {
      ...behaviour(app),
      TEST_SLOTS: '0',
    });

    expect(code).toBe(0);
    const report = JSON.parse(stdout);
    expect(report).toEqual({
      directory: cache,
      files: expect.any(Number),
      bytes: expect.any(Number),
      ready: why === null,
      why: why && expect.stringMatching(why),
    });
    expect(report.files).toBeGreaterThan(500); // Nest has more
  });

  it('warns of a cache in the directory for temporary files', async (context) => {
    const { directory, main, parent } = project();
    writeFileSync(parent, 'this is not a directory');

    const { code, stdout, stderr } = await warm(context, [main], { TMPDIR: directory });

    expect(code).toBe(0);
    expect(stdout).toContain(` in ${directory}/nestjs-cluster-`);
    expect(stderr).toMatch(/^warning: .*let this user write to node_modules\/\.cache/);
  });
});

describe('a cache that cannot be filled', () => {
  it('is refused on a Node without a compile cache', async (context) => {
    const { code, stdout, stderr } = await runCommand(
      nodeFor(20, context),
      [MAIN, 'warm', PROGRAMS.app],
      { cwd: root, env: plainEnvironment() },
    );

    expect({ code, stdout }).toEqual({ code: 78, stdout: '' });
    expect(stderr).toMatch(/^error: Node v20\.\S+ has no compile cache; use Node 22\.12 or later/);
  });

  it('is refused where no directory can be written', async (context) => {
    const { main, parent } = project();
    writeFileSync(parent, 'this is not a directory');

    const { code, stdout, stderr } = await warm(context, [main], { TMPDIR: '/dev/null' });

    expect({ code, stdout }).toEqual({ code: 78, stdout: '' });
    expect(stderr).toMatch(
      /^error: the app starts without a compile cache: .*; let this user write to node_modules\/\.cache/,
    );
  });

  it('is refused where the environment turns it off', async (context) => {
    const { main } = project();

    const { code, stderr } = await warm(context, [main], { NODE_DISABLE_COMPILE_CACHE: '1' });

    expect(code).toBe(78);
    expect(stderr).toContain('NODE_DISABLE_COMPILE_CACHE');
  });

  it('is refused for a program that does not call bootstrap()', async (context) => {
    const { code, stdout, stderr } = await warm(context, [PLAIN], {
      NODE_COMPILE_CACHE: temporaryDirectory(),
    });

    expect({ code, stdout }).toEqual({ code: 70, stdout: '' });
    expect(stderr).toMatch(
      /^error: the app listens and has not called bootstrap\(\) .*; check that the file calls bootstrap\(\)/,
    );
  });
});
