import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import ts from 'typescript';
import * as v from 'valibot';
import { describe, expect, it } from 'vitest';
import { clusterOptions, FINDING_NAMES } from '../../src/contract/options/resolve.js';
import { moduleOptions } from '../../src/contract/options/module.js';
import { leavesOf, offloadVariables } from '../../src/contract/options/checks.js';
import { PACKAGE_READMES, readDocument, rowsOf, sectionOf } from '../support/documents.js';

const root = join(import.meta.dirname, '../..');
const PAGE = 'docs/reference/options.md';
const [BEGIN, END] = ['<!-- options -->', '<!-- end of options -->'];
const page = readDocument(PAGE);

interface Documented {
  readonly key: string;
  /** The comments of its interface and of the key itself. */
  readonly docs: string;
}

/** The interfaces of the options, by name. */
const interfaces = new Map(
  ['bootstrap', 'log', 'module'].flatMap((name) => {
    const path = join(root, `src/contract/options/${name}.ts`);
    const file = ts.createSourceFile(
      path,
      readFileSync(path, 'utf8'),
      ts.ScriptTarget.ES2023,
      true,
    );
    return file.statements
      .filter(ts.isInterfaceDeclaration)
      .map((each) => [each.name.text, each] as const);
  }),
);

/** The options of an interface and of the groups in it, each with its comment. */
function optionsOf(name: string, prefix = ''): Documented[] {
  return interfaces.get(name)!.members.flatMap((member) => {
    const key = prefix + member.name!.getText();
    const own = docsOf(member);
    const [, group] = /\b(?!ClusterEvent)([A-Z]\w+Options)\b/.exec(member.getText()) ?? [];
    if (group === undefined) return [{ key, docs: own }];
    const rest = own.replace(/^See `\w+`[.;] ?/, '').replace(/^./, (first) => first.toUpperCase());
    const docs = `${docsOf(interfaces.get(group)!)} ${rest}`.trim();
    return [{ key, docs }, ...optionsOf(group, `${key}.`)];
  });
}

function docsOf(node: ts.Node): string {
  const [comment] = ts.getJSDocCommentsAndTags(node);
  const text = ts.getTextOfJSDocComment((comment as ts.JSDoc | undefined)?.comment) ?? '';
  return text.replaceAll(/\{@link (\w+) ?\}/g, '`$1`').replaceAll(/\s+/g, ' ');
}

const listOf = (name: string) =>
  optionsOf(name)
    .map(({ key, docs }) => `- **\`${key}\`**: ${docs}`)
    .join('\n');

const leaves = [clusterOptions, moduleOptions].flatMap((group) => [...leavesOf(group)]);
const keyOf = ({ path }: { readonly path: readonly string[] }) => path.join('.');
const variables = [...leaves, ...leavesOf(offloadVariables)].flatMap(({ names = [] }) => names);

it('lists the options by their comments in the source', async () => {
  // After a change: `npx vitest --config test/vitest.config.ts --project unit options-page --update`
  const before = page.slice(0, page.indexOf(BEGIN) + BEGIN.length);
  const after = page.slice(page.indexOf(END));
  const list = [
    '### Options of bootstrap()',
    listOf('ClusterOptions'),
    '### Options of forRoot()',
    listOf('ClusterModuleOptions'),
  ].join('\n\n');
  const path = join(root, PAGE);
  const style = { ...(await resolveConfig(path)), filepath: path };
  const made = await format(`${before}\n\n${list}\n\n${after}`, style);
  await expect(made).toMatchFileSnapshot(path);
});

it('has at most 54 options: one more is a decision', () => {
  const options = leaves.map(keyOf).filter((key) => !key.startsWith('on.'));
  expect(options.length).toBeLessThanOrEqual(54);
});

describe.each([
  ['bootstrap()', clusterOptions, 'ClusterOptions', { admin: { port: 0 } }],
  ['forRoot()', moduleOptions, 'ClusterModuleOptions', {}],
] as const)('the comments of the options of %s', (_, schema, name, given) => {
  const defaults = v.parse(schema, given) as object;
  const comments = new Map(optionsOf(name).map(({ key, docs }) => [key, docs]));
  const all = leavesOf(schema).filter((leaf) => keyOf(leaf) in flat(defaults));

  it.each(all.map((leaf) => [keyOf(leaf), leaf] as const))(
    'tell the default and the variables of %s',
    (key, { path, names = [] }) => {
      const group = comments.get(path[0]!)!;
      for (const variable of names) expect(comments.get(key)! + group).toContain(variable);
      const value = flat(defaults)[key];
      if (typeof value === 'object' || value === undefined || value === Infinity) return;
      if (key === 'admin.port') return; // the only option without a default
      const text =
        typeof value === 'number'
          ? value.toLocaleString('en').replaceAll(',', ' ')
          : JSON.stringify(value).replaceAll('"', '');
      expect(comments.get(key)).toMatch(
        key === 'port'
          ? /Default: .* else 3000/
          : new RegExp(`efault[^.]*(?<!\\w)${text}(?!\\w)|${text}.*\\bdefault`),
      );
    },
  );
});

it('has the name of every finding', () => {
  const [, after = ''] = page.split('# Findings\n');
  expect(codeOf(after.split('\n#')[0]!).slice(1)).toEqual(FINDING_NAMES);
});

it('has every variable of the environment', () => {
  const names = rowsOf(sectionOf(page, 'Environment'))
    .slice(2)
    .flatMap(([name = '']) => codeOf(name));
  expect(names.toSorted()).toEqual([...new Set(variables), 'PORT'].toSorted());
});

it.each(PACKAGE_READMES)('leaves the variables that only a package reads to %s', (path) => {
  const folder = join(root, dirname(path), 'src');
  const source = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => readFileSync(join(folder, file), 'utf8'))
    .join('\n');
  const read = source.match(/(?<=\benv\[')CLUSTER_[A-Z_]+/g) ?? [];
  const own = read.filter((name) => !variables.includes(name));
  const explained = rowsOf(readDocument(path)).flatMap(([name = '']) => codeOf(name));
  expect(own.filter((name) => !explained.includes(name))).toEqual([]);
});

function codeOf(cell: string): string[] {
  return [...cell.matchAll(/`([\w.-]+)`/g)].map(([, name]) => name!);
}

/** The values of an object and of the objects in it, by their path. */
function flat(value: object, path = ''): Record<string, unknown> {
  const entries = Object.entries(value).flatMap(([key, inner]: [string, unknown]) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.entries(flat(inner, `${path}${key}.`))
      : [[path + key, inner] as const],
  );
  return Object.fromEntries(entries);
}
