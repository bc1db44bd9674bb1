import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readDocument, rowsOf } from '../support/documents.js';

const root = join(import.meta.dirname, '../..');
const rows = rowsOf(readDocument('docs/reference/patched.md')).slice(2);
const pathsIn = (cell: string) => [...cell.matchAll(/`([\w./-]+\.ts)`/g)].map(([, path]) => path!);

/** The line assigns a function to a property of another object than `this`, and than three of the package. */
const ASSIGNS = [
  /^\s*(?!this\b|call\.stop\b|handle\.known\b)[\w.!]+(?:\.\w+|\[\w+\]) = (?:async )?(?:function\b|\([^)]*\)(?:: [^=]+)? =>|\w+ =>|this\.#\w+;|wrapped;)/,
  /^\s*Object\.defineProperty\((?!error\b|admin\b|\{)\w+, '/,
];

it('lists at most ten places, each with code and tests that exist', () => {
  expect(rows.length).toBeGreaterThan(5);
  expect(rows.length).toBeLessThanOrEqual(10);
  for (const [, , , code, tests] of rows) {
    const [files, guards] = [pathsIn(code!), pathsIn(tests!)];
    expect(Math.min(files.length, guards.length)).toBeGreaterThan(0);
    expect([...files, ...guards].filter((path) => !existsSync(join(root, path)))).toEqual([]);
  }
});

it('lists every file that assigns a function to a property of a foreign object', () => {
  const listed = rows.flatMap(([, , , code]) => pathsIn(code!));
  const patching = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => `src/${file}`)
    .filter((file) =>
      readFileSync(join(root, file), 'utf8')
        .split('\n')
        .some((line) => ASSIGNS.some((pattern) => pattern.test(line))),
    );

  expect(patching.length).toBeGreaterThan(10);
  expect(patching.filter((file) => !listed.includes(file))).toEqual([]);
});
