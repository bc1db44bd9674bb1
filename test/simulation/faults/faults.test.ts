import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { replaceOnce } from '../bundle.mjs';
import { FAULTS, judge } from './faults.mjs';

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
  it.each(drawn)('finds the fault: $what', { timeout: 600_000 }, async (fault) => {
    // Tests that run at the same time have deadlines.
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
    expect(await judge(fault, { seed: fault.seed, runs: 10_000 })).toHaveProperty('invariant');
  });
}

it.each([
  ['a failure is counted twice', 'failures are counted one by one'],
  ['a slot is replaced twice for the same reason', 'a slot waits for one replacement'],
  ['the timers of a worker that serves run on while it drains', 'no timer outlives its purpose'],
])('books the fault under the invariant that it broke: %s', async (what, invariant) => {
  const fault = FAULTS.find((each) => each.what === what)!;
  const verdict = await judge(fault, { seed: 1, runs: 1_000 });
  expect(verdict).toMatchObject({ invariant, lives: verdict.seed });
});

/** Replaces nothing, so no life fails. */
const NONE = { ...FAULTS[0]!, replace: FAULTS[0]!.find };

it('judges no fault if a life takes too long', async () => {
  const verdict = await judge(NONE, { seed: 1, runs: 1_000, lifeEndsWithinMs: 1 });
  expect(verdict).toEqual({ problem: 'NOT JUDGED: a life took 0.001 s' });
});

it('misses a fault however long all lives take', { timeout: 60_000 }, async () => {
  const startedAt = performance.now();
  const verdict = await judge(NONE, { seed: 1, runs: 1_000, lifeEndsWithinMs: 2_000 });
  expect(verdict).toEqual({ problem: 'NOT FOUND in 1000 lives' });
  expect(performance.now() - startedAt).toBeGreaterThan(2_000);
});
