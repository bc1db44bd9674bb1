import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGES_BESIDE } from './packages-beside.mjs';

const root = join(import.meta.dirname, '../..');

/** Packages, output and generated pages of the site. */
const OF_THE_SITE = /^(node_modules|\.vitepress|api)\//;

/** The README of each package in packages/. */
export const PACKAGE_READMES: readonly string[] = PACKAGES_BESIDE.map(
  (name) => `packages/${name}/README.md`,
);

/** Every page that a reader is led to, by its path from the root of the repository. */
export const DOCUMENTS: readonly string[] = [
  ...PACKAGE_READMES,
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md') && !OF_THE_SITE.test(path))
    .map((path) => `docs/${path}`),
];

/** @param path from the root of the repository. */
export function readDocument(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

/** The number that docs/compatibility.md gives for the messages of the core and of each package. */
export function documentedProtocolVersion(): number {
  const page = readDocument('docs/compatibility.md');
  return Number(/the protocol version, which is still (\d+)/.exec(page)![1]);
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

/** The part of a page below a heading, up to the next one of its level. */
export function sectionOf(text: string, title: string): string {
  const [, after = ''] = text.split(`\n## ${title}\n`);
  return after.split('\n## ')[0]!;
}

/** Rows of all tables of a page: the text of each cell. */
export function rowsOf(text: string): string[][] {
  return [...text.matchAll(/^\| (.*) \|$/gm)].map(([, row]) =>
    row!.split(' | ').map((cell) => cell.trim()),
  );
}
