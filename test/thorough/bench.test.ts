import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { NODE } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { runCommand } from '../support/run-command.js';
import { describeWith, SYSTEM_ENVIRONMENT } from '../support/system-packages.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const bench = join(import.meta.dirname, '../bench');
const runner = join(bench, 'run.mjs');

/** Whether the packages of the benchmark are installed: the project does not depend on them. */
const INSTALLED = existsSync(join(bench, 'node_modules/pm2/package.json'));

interface Row {
  readonly system: string;
  readonly notRun?: string;
  readonly requests?: number;
  readonly asked?: number;
  readonly cpuMicros?: number;
  readonly cpuRatio?: number;
  readonly windows?: readonly { readonly place: number; readonly cpuMicros: number }[];
  readonly workerRssBytes?: number;
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

  it.each([
    [['--system', 'nothing'], '--system nothing: there is none of this name; known are one-proc'],
    [['--node', 'nothing'], '--node nothing'],
  ])('refuses %j in one line', async (args, message) => {
    const result = await run(args);
    expect(result).toMatchObject({ code: 2, stdout: '' });
    expect(result.stderr.trim().split('\n')).toEqual([
      expect.stringContaining(`error: ${message}`),
    ]);
  });

  it('counts what reloads lose', async () => {
    const short = ['--adapter=express', '--rounds=1', '--events=1'];
    const rows = await measured('--scope=reloads', '--system=nestjs-cluster', ...short);
    expect(rows.get('nestjs-cluster')).toMatchObject({ lost: 0, errors: {} });
    expect(rows.get('nestjs-cluster')!.asked).toBeGreaterThan(100);
  });

  it('ends all that it started when it is interrupted, a daemon too', async () => {
    const args = [runner, '--scope', 'slow', '--system', 'pm2', '--node', NODE];
    const child = spawn(process.execPath, args, {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: SYSTEM_ENVIRONMENT,
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    const before = new Set(running('PM2 v'));
    const started = () => running('PM2 v').filter((pid) => !before.has(pid));
    await eventually('what the scope starts', () => started().length > 0);
    const exited = once(child, 'exit');
    child.kill('SIGINT');
    expect(await exited).toEqual([130, null]);
    expect(started()).toEqual([]);
  });
});

describeWith(['wrk'], 'npm run bench with wrk', () => {
  it('measures systems side by side', async () => {
    const rows = await measured(
      '--scope=keep-alive',
      '--adapter=fastify',
      '--seconds=1',
      '--starts=1',
      '--windows=2',
      '--system=one-process',
      '--system=nestjs-cluster',
    );
    expect([...rows.keys()]).toEqual(['one-process', 'nestjs-cluster']);
    for (const row of rows.values()) {
      expect(row.notRun).toBeUndefined();
      expect(row.requests).toBeGreaterThan(100);
      expect(row.cpuMicros).toBeGreaterThan(1);
      expect(row.workerRssBytes).toBeGreaterThan(30e6);
      expect(Object.values(row.errors!)).toEqual([0, 0, 0, 0, 0]);
    }
    const { cpuRatio, windows } = rows.get('nestjs-cluster')!;
    expect([cpuRatio, windows!.map(({ place }) => place)]).toEqual([1, [2, 3]]);
    const other = rows.get('one-process')!;
    expect(other.windows!.map(({ place }) => place)).toEqual([1, 4]);
    const [ratio, ratios] = [
      other.cpuRatio!,
      [0, 1].map((k) => other.windows![k]!.cpuMicros / windows![k]!.cpuMicros),
    ];
    expect(ratio).toBeCloseTo((ratios[0]! + ratios[1]!) / 2, 6);
  });

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

/** Pids of the processes whose command line has a text. */
function running(text: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(text);
      } catch {
        return false; // the process has ended
      }
    });
}
