import { readdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect, it } from 'vitest';
import type { BootReport } from '../../src/tools/boot/report.js';
import { behaviour } from '../support/behaviour.js';
import { NODE, PROGRAMS } from '../support/cluster-process.js';
import { MAIN } from '../support/command-line.js';
import { plainEnvironment, runCommand } from '../support/run-command.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const root = join(import.meta.dirname, '../..');

function boot(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const environment = { ...plainEnvironment(), ...behaviour('slow-boot'), ...env };
  return runCommand(NODE, [MAIN, 'boot', ...args], { cwd: root, env: environment });
}

it.each([
  { nest: 12, main: PROGRAMS.app },
  { nest: 11, main: PROGRAMS.nest11 },
])('says where the start of an app of Nest $nest spends its time', async ({ main }) => {
  const TMPDIR = temporaryDirectory();
  const BIG_FILE = join(temporaryDirectory(), 'big.json');
  writeFileSync(BIG_FILE, JSON.stringify(Array(3e6).fill(7)));
  const env = { TMPDIR, BIG_FILE };
  const { code, stdout, stderr } = await boot([main, '--json', '--limit', '1000'], env);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const report = JSON.parse(stdout) as BootReport;

  const found = (name: string) => report.modules.find((each) => each.name === name);
  const slow = found('test/fixtures/behaviours/slow-boot.mjs')!;
  const required = found('test/fixtures/behaviours/slow-boot.cjs')!;
  expect([slow.files, required.files]).toEqual([1, 1]);
  // On a busy machine V8 takes samples late: a part of a block counts for what ran before it.
  expect(slow.selfMs).toBeGreaterThan(100); // blocks for 200 ms
  expect(required.selfMs).toBeGreaterThan(75); // blocks for 150 ms
  expect(slow.totalMs).toBeGreaterThan(slow.selfMs + required.selfMs - 1); // includes the other file
  // Nothing but Node's loader is at work here.
  expect(found(relative(root, BIG_FILE))!.selfMs).toBeGreaterThan(10);
  const names = report.modules.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(['@nestjs/core', 'reflect-metadata', 'rxjs']));
  expect(report.hooks.slice(0, 2)).toMatchObject([
    { class: 'SlowToInit', module: 'AppModule', hook: 'onModuleInit' },
    { class: 'SlowToBootstrap', module: 'AppModule', hook: 'onApplicationBootstrap' },
  ]);
  expect(report.hooks.filter((hook) => hook.class === 'SlowToInit')).toHaveLength(1);
  expect(report.hooks[0]!.ms).toBeGreaterThan(98);

  const { phases, totalMs } = report;
  expect(phases.imports).toBeGreaterThan(350);
  expect(phases.hooks).toBeGreaterThan(156);
  expect(Math.min(...Object.values(phases))).toBeGreaterThan(0);
  const sum = report.modules.reduce((ms, { selfMs }) => ms + selfMs, phases.node);
  expect(sum / totalMs).toBeCloseTo(1, 1);
  expect(report.files).toBeGreaterThan(50);
  expect(report.bytes).toBeGreaterThan(1e6);
  expect(report.compileCache === null).toBe(report.node.startsWith('v20.'));
  expect(readdirSync(TMPDIR)).toEqual([]);
});
