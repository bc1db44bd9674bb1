import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { npmEnvironment, runCommand } from '../support/run-command.js';
import { foreignImportsOf } from './support/imports.js';
import { packed } from './support/tarball.js';
import { TemporaryProject } from './support/temporary-project.js';

/** The package with none of its peers: the command needs nothing of Nest. */
let project: TemporaryProject;

beforeAll(async () => {
  project = await TemporaryProject.create();
  const tarball = packed();
  await project.install([tarball.path], { withoutPeers: true });
});

afterAll(() => project.remove());

/** As a user types it; `--no`: never another package of that name. */
const npx = (...args: string[]) =>
  runCommand('npx', ['--no', '--', 'nestjs-cluster', ...args], {
    cwd: project.directory,
    env: npmEnvironment(),
  });

describe('npx nestjs-cluster', () => {
  it('lists its commands', async () => {
    const { code, stdout } = await npx('--help');

    expect(code).toBe(0);
    expect(stdout).toContain('Usage: nestjs-cluster');
    expect(stdout).toMatch(/^ +ps\b[^]*^ +reload\b[^]*^ +cpu-profile\b/m);
  });
});

describe('the command', () => {
  it('is alone in loading what reads command lines', async () => {
    const dist = (file: string) => project.path('node_modules/nestjs-cluster/dist', file);

    expect(existsSync(project.path('node_modules/commander'))).toBe(true);
    expect([...foreignImportsOf(dist('cli/main.js'))]).toContain('commander');
    expect([...foreignImportsOf(dist('index.js'))]).not.toContain('commander');
    expect([...foreignImportsOf(dist('bootstrap/index.js'))]).not.toContain('commander');
  });
});
