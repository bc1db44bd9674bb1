import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { withSourcePlaces } from '../../../../src/contract/log/source-places.js';
import { temporaryDirectory } from '../../../support/temporary-directory.js';

it('names the source of a bundle, and leaves all other files as they are', () => {
  const root = temporaryDirectory();
  const bundle = join(root, 'chunk.js');
  // The first line of the bundle is the third line of the source.
  const map = { version: 3, sources: ['../src/a.ts'], names: [], mappings: 'AAEA;AACA' };
  writeFileSync(`${bundle}.map`, JSON.stringify(map));
  const source = join(root, '../src/a.ts');

  expect(withSourcePlaces(`at one (${bundle}:1:1) at two (${bundle}:2:1)`, root)).toBe(
    `at one (${source}:3:1) at two (${source}:4:1)`,
  );
  expect(withSourcePlaces(`at async ${pathToFileURL(bundle).href}:1:1`, root)).toBe(
    `at async ${source}:3:1`,
  );
  for (const other of [`at one (/app/main.js:1:1) in ${root}`, `at ${root}/without-map.js:1:1`]) {
    expect(withSourcePlaces(other, root)).toBe(other);
  }
});
