import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DEFAULTS } from '../../src/options/defaults.js';
import { anchorsOf, DOCUMENTS, readDocument, rowsOf } from '../support/documents.js';

const root = join(import.meta.dirname, '../..');

describe('the documentation', () => {
  it('has a README that npm shows whole', () => {
    const readme = readDocument('README.md');
    expect(Buffer.byteLength(readme)).toBeLessThanOrEqual(8 * 1_024);
    expect(readme.split('\n').length).toBeLessThanOrEqual(200);
  });

  it.each(DOCUMENTS)('has pages of at most 200 lines: %s', (path) => {
    expect(readDocument(path).split('\n').length).toBeLessThanOrEqual(200);
  });

  it.each(DOCUMENTS)('has no dead link: %s', (path) => {
    const dead = linksOf(readDocument(path)).filter((link) => !leadsSomewhere(path, link));
    expect(dead).toEqual([]);
  });

  it('leads to every page from the README', () => {
    const links = linksOf(readDocument('README.md')).map((link) => link.split('#')[0]);
    const others = DOCUMENTS.filter((path) => path !== 'README.md');
    expect(others.filter((path) => !links.includes(path))).toEqual([]);
  });
});

describe('the reference of options', () => {
  /** Options that nothing stands for where nobody sets them. */
  const WITHOUT_DEFAULT = ['host', 'path', 'admin.port', 'metrics.registry', 'offload.module'];
  /** In the environment alone. */
  const { logFormat: _, ...defaults } = DEFAULTS;
  const known = new Map<string, unknown>([
    ...leavesOf(defaults),
    ...WITHOUT_DEFAULT.map((name) => [name, undefined] as const),
  ]);
  const documented = rowsOf(readDocument('docs/reference/options.md')).flatMap(
    ([names = '', values = '']) => {
      const texts = values.split(', ');
      return codeOf(names).map((name, i): [string, string] => [name, texts[i] ?? texts[0]!]);
    },
  );

  it('has every option once', () => {
    const options = documented.map(([name]) => name).filter((name) => !/^[A-Z_]+$/.test(name));
    expect(options.toSorted()).toEqual([...known.keys()].toSorted());
  });

  it.each(documented.filter(([, value]) => value.startsWith('`')))(
    'tells the default of %s: %s',
    (name, value) => {
      if (!known.has(name)) return expect(name).toMatch(/^(CLUSTER_|WEB_CONCURRENCY)/);
      const expected = known.get(name);
      if (Array.isArray(expected)) {
        return expect(value).toBe(`\`${expected[0]} … ${expected.at(-1)}\``);
      }
      expect(value).toBe(
        `\`${typeof expected === 'string' ? `'${expected}'` : String(expected)}\``,
      );
    },
  );

  it('has every variable of the environment', () => {
    const source = readFileSync(join(root, 'src/options/environment.ts'), 'utf8');
    const variables = new Set(source.match(/\b(?:CLUSTER_[A-Z_]+|WEB_CONCURRENCY)\b/g));
    const names = documented.map(([name]) => name).filter((name) => /^[A-Z_]+$/.test(name));
    expect(names.toSorted()).toEqual([...variables].toSorted());
  });
});

/** Values of an object, by their path. */
function leavesOf(value: object, path = ''): [string, unknown][] {
  return Object.entries(value).flatMap(([key, inner]: [string, unknown]) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? leavesOf(inner, `${path}${key}.`)
      : [[`${path}${key}`, inner] as [string, unknown]],
  );
}

function codeOf(cell: string): string[] {
  return [...cell.matchAll(/`([\w.]+)`/g)].map(([, name]) => name!);
}

/** Links to files of the repository, and to headings. */
function linksOf(text: string): string[] {
  const found = text
    .replace(/^```.*?^```/gms, '')
    .matchAll(/\]\(([^)\s]+)\)|src(?:set)?="([^"]+)"/g);
  return [...found].map(([, link, image]) => (link ?? image)!).filter((to) => !/^\w+:/.test(to));
}

function leadsSomewhere(from: string, link: string): boolean {
  const [file, anchor] = link.split('#') as [string, string?];
  const path = file === '' ? from : normalize(join(dirname(from), file));
  if (!existsSync(join(root, path))) return false;
  if (anchor === undefined || !path.endsWith('.md')) return true;
  const text = readDocument(path);
  return anchorsOf(text).includes(anchor) || text.includes(`<a id="${anchor}"></a>`);
}
