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

// They take two minutes.
if (process.env['CI']) {
  it.each(FAULTS)('finds the fault: $what', { timeout: 2 * ENDS_WITHIN_MS }, async (fault) => {
    // Tests that run beside it have deadlines.
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
    expect(await judge(fault, { seed: fault.seed, runs: 10_000 })).toHaveProperty('invariant');
  });
}

it('judges no fault by lives that take too long', async () => {
  const [fault] = FAULTS;
  const verdict = await judge(fault!, { seed: 1, runs: 1_000, endsWithinMs: 1 });
  expect(verdict).toEqual({ problem: 'NOT JUDGED within 0.001 s' });
});
