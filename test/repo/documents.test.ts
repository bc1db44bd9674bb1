import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { isOfMissingPackage } from '../support/packages-beside.mjs';
import {
  anchorsOf,
  DOCUMENTS,
  PACKAGE_READMES,
  readDocument,
  rowsOf,
  sectionOf,
} from '../support/documents.js';

const root = join(import.meta.dirname, '../..');

describe('the documentation', () => {
  it('has a README of at most 120 lines, with code in the first 40', () => {
    const lines = readDocument('README.md').split('\n');
    expect(lines.length).toBeLessThanOrEqual(120);
    expect(lines.slice(0, 40).join('\n')).toContain('void bootstrap(');
  });

  it('has at most 30 pages', () => {
    expect(DOCUMENTS.filter((path) => path.startsWith('docs/')).length).toBeLessThanOrEqual(30);
  });

  it('has at most 26,150 words: one more page of prose is a decision', () => {
    const pages = DOCUMENTS.filter((path) => path === 'README.md' || path.startsWith('docs/'));
    const words = pages.flatMap((path) => readDocument(path).split(/\s+/).filter(Boolean));
    expect(words.length).toBeLessThanOrEqual(26_150);
  });

  it.each(DOCUMENTS)('has no dead link: %s', (path) => {
    const dead = linksOf(readDocument(path)).filter((link) => !leadsSomewhere(path, link));
    expect(dead).toEqual([]);
  });

  it('leads to every page from the README and its index', () => {
    const links = ['README.md', 'docs/README.md'].flatMap((path) =>
      linksOf(readDocument(path)).map((link) =>
        normalize(join(dirname(path), link.split('#')[0]!)),
      ),
    );
    const others = DOCUMENTS.filter((path) => path !== 'README.md');
    expect(others.filter((path) => !links.includes(path))).toEqual([]);
  });

  it('has every page in the sidebar of the site', () => {
    const config = sourceOf('docs/.vitepress/config.mjs');
    const pages = DOCUMENTS.filter((path) => path.startsWith('docs/'));
    const missing = pages.filter((path) => !config.includes(`'${path.slice(5, -3)}']`));
    expect(missing).toEqual([]);
  });
});

describe('the reference of events', () => {
  const rows = rowsOf(sectionOf(readDocument('docs/reference/events.md'), 'Events'));
  const documented = new Map(
    rows.slice(2).map(([name = '', , , fields = '']) => [codeOf(name)[0]!, codeOf(fields)]),
  );
  const [, source = ''] = sourceOf('src/contract/log/events.ts').split('interface ClusterEventMap');
  const members = [
    ...source.split('\n}')[0]!.matchAll(/^ {2}'?([a-z-]+)'?: (.*?;)(?=\n {2}\S|$)/gms),
  ];

  it.each(DOCUMENTS)('has every event that is listened to, also within a sentence: %s', (path) => {
    const named = [...readDocument(path).matchAll(/`(?:runtime\.on\(|on: \{ )'([\w-]+)'/g)];
    for (const [, name] of named) expect([...documented.keys()]).toContain(name);
  });

  it('has every event', () => {
    expect([...documented.keys()].toSorted()).toEqual(members.map(([, name]) => name!).toSorted());
  });

  it.each(members.map(([, name, type]) => [name!, type!] as const))(
    'has every field of %s',
    (name, type) => {
      const fields = [...type.matchAll(/(\w+)\??: /g)].map(([, field]) => field!);
      expect(documented.get(name)).toEqual(expect.arrayContaining(fields));
    },
  );
});

/** The error classes that the entries of a package export. A type cannot be caught. */
function errorClassesOf(folder: string): string[] {
  const { exports } = JSON.parse(sourceOf(join(folder, 'package.json'))) as {
    exports: Record<string, { default?: { default: string } }>;
  };
  const names = Object.values(exports).flatMap(({ default: target }) => {
    if (target === undefined) return [];
    const entry = join(folder, target.default.replace(/^\.\/dist\/(.*)js$/, 'src/$1ts'));
    const values = sourceOf(entry).replaceAll(/export type \{[^}]*\}/g, '');
    return values.match(/(?<!\btype )\b\w+(?:Error|Exception)\b/g) ?? [];
  });
  return [...new Set(names)].toSorted();
}

describe('the reference of errors', () => {
  const page = readDocument('docs/reference/events.md');

  it('has every exit code', () => {
    const source = ['src/contract/errors', 'src/bootstrap', 'src/primary', 'src/worker', 'src/cli']
      .flatMap(filesOf)
      .map(sourceOf)
      .join('\n');
    const codes = source.matchAll(/(?:exitCode \|?\|?= |#end\(|\.exit\()(\d+)\b(?! \+)|(128) \+ /g);
    const used = new Set([...codes].map(([, code, forced]) => code ?? `${forced} + n`));
    const documented = rowsOf(sectionOf(page, 'Exit codes')).slice(2);
    expect(documented.map(([code]) => code!).toSorted()).toEqual([...used].toSorted());
  });

  it('has every error class that an entry of the package exports', () => {
    const documented = ['Error classes', 'Exceptions with a status'].flatMap((title) =>
      rowsOf(sectionOf(page, title)).slice(2),
    );
    expect(documented.flatMap(([name = '']) => codeOf(name)).toSorted()).toEqual(
      errorClassesOf('.'),
    );
  });

  it.each(PACKAGE_READMES)('leaves the classes of a package to %s', (path) => {
    const documented = rowsOf(sectionOf(readDocument(path), 'Errors')).slice(2);
    expect(documented.flatMap(([name = '']) => codeOf(name)).toSorted()).toEqual(
      errorClassesOf(dirname(path)),
    );
  });
});

describe('the reference of signals', () => {
  /** Node's own, and one that no process can answer. */
  const OF_OTHERS = ['SIGKILL', 'SIGUSR1'];

  it('has every signal that is answered, and no other', () => {
    const sources = [
      sourceOf('src/bootstrap/roles/run-primary.ts'),
      sourceOf('src/bootstrap/roles/run-standalone.ts'),
      // The file also names signals that are left alone.
      /SIGNALS_OF_THE_PRIMARY = .*/.exec(sourceOf('src/worker/boot/signals.ts'))![0],
    ];
    const answered = sources.flatMap((source) => source.match(/\bSIG[A-Z\d]+\b/g) ?? []);
    const documented = rowsOf(
      sectionOf(readDocument('docs/reference/events.md'), 'Signals'),
    ).flatMap(([names = '']) => names.match(/\bSIG[A-Z\d]+\b/g) ?? []);
    expect([...new Set(documented)].toSorted()).toEqual(
      [...new Set([...answered, ...OF_OTHERS])].toSorted(),
    );
  });
});

describe('the page of messages', () => {
  const source = filesOf('src')
    .map(sourceOf)
    .join('\n')
    .replaceAll(/[`'"]\s*\+\s*[`'"]/g, '');

  it('is named in no message, as no other page is, since the package has no pages', () => {
    const { files } = JSON.parse(sourceOf('package.json')) as { files: string[] };
    expect(files).toEqual(['dist']);
    const code = source.replaceAll(/\/\*.*?\*\/|\/\/[^\n]*/gs, '');
    expect(code.match(/docs\/[\w./-]+\.md/g) ?? []).toEqual([]);
  });

  const parts = rowsOf(readDocument('docs/reference/messages.md'))
    .flatMap(([cell = '']) => [...cell.matchAll(/`([^`]+ [^`]+)`/g)])
    .flatMap(([, message]) => message!.split(/…|: |\b\d+\b|\(cause=\w+/))
    .map((part) => part.trim())
    .filter(({ length }) => length > 3);

  it('have only messages that there are', () => {
    expect(parts.length).toBeGreaterThan(150);
    expect(parts.filter((part) => !source.includes(part))).toEqual([]);
  });

  /** A hint below an error, and the lookup of a host without an address, which Node rejects itself. */
  const WITHOUT_ROW = ['(use --help to list the commands and options)', 'no address to bind'];

  it('has every error and warning that there is', () => {
    const messages = filesOf('src').flatMap(messagesOf);
    expect(messages.length).toBeGreaterThan(85);
    const missing = messages.filter((text) => !parts.some((part) => text.includes(part)));
    expect(missing).toEqual(WITHOUT_ROW);
  });
});

/** Calls that report, refuse or throw: their arguments are messages. */
const SAYS = /^(?:warn|refuse|fail)\(|(?:Error|Exception)\($|\.#?warn(?:Once)?\($/;

/** Texts of a file that a user meets as an error or a warning; `…` stands for a value. */
function messagesOf(path: string): string[] {
  const file = ts.createSourceFile(path, sourceOf(path), ts.ScriptTarget.Latest, true);
  const constants = new Map<string, string>();
  const messages: string[] = [];
  const textOf = (node: ts.Node): string => {
    if (ts.isStringLiteralLike(node)) return node.text;
    if (ts.isIdentifier(node)) return constants.get(node.text) ?? '…';
    if (ts.isBinaryExpression(node)) return textOf(node.left) + textOf(node.right);
    if (!ts.isTemplateExpression(node)) return '…';
    return node.templateSpans.reduce(
      (text, { expression, literal }) => text + textOf(expression) + literal.text,
      node.head.text,
    );
  };
  const visit = (node: ts.Node): void => {
    if (ts.isVariableDeclaration(node) && node.initializer && /^[A-Z_]+$/.test(node.name.getText()))
      constants.set(node.name.getText(), textOf(node.initializer));
    if ((ts.isCallExpression(node) || ts.isNewExpression(node)) && says(node))
      messages.push(...(node.arguments ?? []).map(textOf));
    if (ts.isPropertyAssignment(node) && node.name.getText() === 'problem')
      messages.push(textOf(node.initializer));
    ts.forEachChild(node, visit);
  };
  visit(file);
  // A value alone, the name of a finding, and a class name are not sentences.
  return messages.filter((text) => /\w \w/.test(text));
}

function says({ expression }: ts.CallExpression | ts.NewExpression): boolean {
  return SAYS.test(`${expression.getText()}(`);
}

function sourceOf(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

/** TypeScript files below a folder, by their path from the root. */
function filesOf(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.c?ts$/.test(path))
    .map((path) => join(folder, path));
}

function codeOf(cell: string): string[] {
  return [...cell.matchAll(/`([\w.-]+)`/g)].map(([, name]) => name!);
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
  if (!existsSync(join(root, path))) return isOfMissingPackage(path);
  if (anchor === undefined || !path.endsWith('.md')) return true;
  const text = readDocument(path);
  return anchorsOf(text).includes(anchor) || text.includes(`<a id="${anchor}"></a>`);
}
