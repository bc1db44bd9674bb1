import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { replaceOnce } from '../bundle.mjs';
import { FAULTS } from './faults.mjs';
import { ENDS_WITHIN_MS, judge } from './judge.mjs';

const ROOT = join(import.meta.dirname, '../../..');

it.each(FAULTS)('has a place in the core for the fault: $what', (fault) => {
  const code = readFileSync(join(ROOT, fault.file), 'utf8');
  expect(replaceOnce(code, fault)).not.toBe(code);
});

// All of them take four minutes (`npm run simulate:faults`). Each commit draws one half.
if (process.env['CI']) {
  const commit = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: ROOT, encoding: 'utf8' });
  const half = parseInt(commit.slice(0, 8), 16) % 2;
  const drawn = FAULTS.filter((_, index) => index % 2 === half);
  it.each(drawn)('finds the fault: $what', { timeout: 2 * ENDS_WITHIN_MS }, async (fault) => {
    // Tests that run at the same time have deadlines.
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
    expect(await judge(fault, { seed: fault.seed, runs: 10_000 })).toHaveProperty('invariant');
  });
}

it('judges no fault by lives that take too long', async () => {
  const [fault] = FAULTS;
  const verdict = await judge(fault!, { seed: 1, runs: 1_000, endsWithinMs: 1 });
  expect(verdict).toEqual({ problem: 'NOT JUDGED within 0.001 s' });
});
