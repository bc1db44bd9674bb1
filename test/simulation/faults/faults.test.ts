import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { replaceOnce } from '../bundle.mjs';
import { FAULTS } from './faults.mjs';
import { judge } from './judge.mjs';

const ROOT = join(import.meta.dirname, '../../..');

it.each(FAULTS)('has a place in the core for the fault: $what', (fault) => {
  const code = readFileSync(join(ROOT, fault.file), 'utf8');
  expect(replaceOnce(code, fault)).not.toBe(code);
});

it('judges no fault by lives that take too long', async () => {
  const [fault] = FAULTS;
  const verdict = await judge(fault!, { seed: 1, runs: 1_000, endsWithinMs: 1 });
  expect(verdict).toEqual({ problem: 'NOT JUDGED within 0.001 s' });
});
