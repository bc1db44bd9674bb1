import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';

const SOURCE = resolve(import.meta.dirname, '../../src');

it('nothing but an extra imports an extra: an app without it pays nothing', () => {
  const files = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' });
  const core = files.filter((file) => file.endsWith('.ts') && !file.startsWith('extras/'));
  const importers = core.filter((file) => {
    const text = readFileSync(join(SOURCE, file), 'utf8');
    return /(?:from|import\()\s*'[^']*\bextras\//.test(text);
  });
  expect(core.length).toBeGreaterThan(200);
  expect(importers).toEqual([]);
});
