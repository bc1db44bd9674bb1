import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { npmEnvironment, runCommand } from '../../support/run-command.js';
import type { PackReport } from './tarball.js';

const root = join(import.meta.dirname, '../../..');

/** Packs the package as it is built: no script runs, so nothing is built again. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const directory = await mkdtemp(join(tmpdir(), 'nestjs-cluster-packed-'));
  const { code, stdout, stderr } = await runCommand(
    'npm',
    ['pack', '--json', '--ignore-scripts', '--pack-destination', directory],
    { cwd: root, env: npmEnvironment() },
  );
  if (code !== 0) throw new Error(`npm pack ended with ${code}\n${stderr}`);
  const [report] = JSON.parse(stdout) as PackReport[];
  if (report === undefined) throw new Error(`npm pack reported no package: ${stdout}`);
  project.provide('packed', { directory, report });
  return () => rm(directory, { recursive: true, force: true });
}
