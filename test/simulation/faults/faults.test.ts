import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { replaceOnce } from '../bundle.mjs';
import { FAULTS } from './faults.mjs';

const ROOT = join(import.meta.dirname, '../../..');

it.each(FAULTS)('has a place in the core for the fault: $what', (fault) => {
  const code = readFileSync(join(ROOT, fault.file), 'utf8');
  expect(replaceOnce(code, fault)).not.toBe(code);
});
