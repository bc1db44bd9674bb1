import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');

/** Every page that a reader is led to, by its path from the root of the repository. */
export const DOCUMENTS: readonly string[] = [
  'README.md',
  'CONTRIBUTING.md',
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .map((path) => `docs/${path}`),
];

/** @param path from the root of the repository. */
export function readDocument(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

/** The anchors of its headings, as GitHub makes them. */
export function anchorsOf(text: string): string[] {
  const code = /^```.*?^```/gms;
  return [...text.replace(code, '').matchAll(/^#+ (.*)$/gm)].map(([, title]) =>
    title!
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );
}

/** Rows of all tables of a page: the text of each cell. */
export function rowsOf(text: string): string[][] {
  return [...text.matchAll(/^\| (.*) \|$/gm)].map(([, row]) =>
    row!.split(' | ').map((cell) => cell.trim()),
  );
}
