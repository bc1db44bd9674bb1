import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { NODE } from '../support/cluster-process.js';
import { plainEnvironment, runCommand } from '../support/run-command.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const TIMEOUT_MS = 150_000;

interface Verdict {
  readonly faults: readonly { readonly name: string; readonly count: number }[];
}

it(
  'a cluster under chaos loses nothing but what a killed worker had begun',
  async () => {
    const json = join(temporaryDirectory(), 'chaos.json');
    const run = await runCommand(
      process.execPath,
      ['run.mjs', '--seconds=30', '--seed=42', '--workers=2', '--node', NODE, '--json', json],
      {
        cwd: join(import.meta.dirname, '../chaos'),
        env: plainEnvironment(),
        timeoutMs: TIMEOUT_MS,
      },
    );
    expect(run.code, `${run.stderr}${run.stdout}`).toBe(0);
    const { faults } = JSON.parse(readFileSync(json, 'utf8')) as Verdict;
    expect(faults.filter(({ count }) => count === 0)).toEqual([]);
  },
  TIMEOUT_MS,
);
