import { existsSync, readdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { npmEnvironment, runCommand } from '../../support/run-command.js';
import type { PackReport } from './tarball.js';

const root = join(import.meta.dirname, '../../..');

const beside = join(root, 'packages');

/** Packs the packages as they are built: no script runs, so nothing is built again. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const directory = await mkdtemp(join(tmpdir(), 'nestjs-cluster-packed-'));
  const names = existsSync(beside) ? readdirSync(beside) : [];
  const paths = [root, ...names.map((name) => join(beside, name))];
  const { code, stdout, stderr } = await runCommand(
    'npm',
    ['pack', '--json', '--ignore-scripts', '--pack-destination', directory, ...paths],
    { cwd: root, env: npmEnvironment() },
  );
  if (code !== 0) throw new Error(`npm pack ended with ${code}\n${stderr}`);
  const reports = JSON.parse(stdout) as PackReport[];
  project.provide('packed', { directory, reports });
  return () => rm(directory, { recursive: true, force: true });
}
