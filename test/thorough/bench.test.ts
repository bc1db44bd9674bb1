import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { NODE } from '../support/cluster-process.js';
import { runCommand } from '../support/run-command.js';
import { describeWith, SYSTEM_ENVIRONMENT } from '../support/system-packages.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const bench = join(import.meta.dirname, '../bench');
const runner = join(bench, 'run.mjs');

/** Whether the packages of the benchmark are installed: the project does not depend on them. */
const INSTALLED = existsSync(join(bench, 'node_modules/pm2/package.json'));

interface Row {
  readonly system: string;
  readonly asked?: number;
  readonly lost?: number;
  readonly errors?: Record<string, number>;
}

function run(args: readonly string[], env = SYSTEM_ENVIRONMENT) {
  return runCommand(process.execPath, [runner, ...args], { cwd: bench, env });
}

/** The rows of a scope, by system; nothing of it is written to the results of the project. */
async function measured(...args: string[]): Promise<Map<string, Row>> {
  const json = join(temporaryDirectory(), 'result.json');
  // `--force`: the other load on the machine does not matter to these tests.
  const result = await run(['--node', NODE, '--json', json, '--force', ...args]);
  expect(result, result.stderr).toMatchObject({ code: 0 });
  const { rows } = JSON.parse(readFileSync(json, 'utf8')) as { rows: Row[] };
  return new Map(rows.map((row) => [row.system, row]));
}

describe('npm run bench', () => {
  it('has its packages', () => {
    expect(INSTALLED, 'node test/bench/install.mjs, which npm run test:rest does first').toBe(true);
  });

  it('counts what reloads lose', async () => {
    const short = ['--adapter=express', '--rounds=1', '--events=1'];
    const rows = await measured('--scope=reloads', '--system=nestjs-cluster', ...short);
    expect(rows.get('nestjs-cluster')).toMatchObject({ lost: 0, errors: {} });
    expect(rows.get('nestjs-cluster')!.asked).toBeGreaterThan(100);
  });
});

describeWith(['wrk'], 'npm run bench with wrk', () => {
  it('refuses to publish what was measured while others used the machine, and names them', async () => {
    const marker = 'for (;;) /* somebody else */;';
    const spinning = availableParallelism();
    const others = Array.from({ length: spinning }, () => spawn(process.execPath, ['-e', marker]));
    onTestFinished(() => others.forEach((other) => other.kill('SIGKILL')));
    const scope = ['--scope=keep-alive', '--adapter=fastify', '--system=one-process'];
    const json = join(temporaryDirectory(), 'result.json');
    const lengths = ['--seconds=1', '--starts=1', '--windows=2'];
    const result = await run(['--node', NODE, '--json', json, ...scope, ...lengths]);
    expect(result).toMatchObject({ code: 1, stdout: '' });
    expect(result.stderr).toContain('discarded: others used');
    expect(result.stderr).toContain(
      'error: the machine is in use: 1 of 1 measurements were disturbed',
    );
    expect(result.stderr).toMatch(/up to [\d.]+ % .*somebody else.* \(pid \d+\)/);
    expect(existsSync(json)).toBe(false);
  });
});
