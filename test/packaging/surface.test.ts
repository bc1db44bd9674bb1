import { existsSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join } from 'node:path';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { importsOf, packageNameOf } from './support/imports.js';
import {
  BOOTSTRAP_NAMES,
  BULLMQ_NAMES,
  CACHE_NAMES,
  EVENTS_NAMES,
  LOCK_NAMES,
  PACKAGE_NAMES,
  SCHEDULE_NAMES,
  SOCKET_IO_NAMES,
  TESTING_NAMES,
  THROTTLER_NAMES,
} from './support/public-names.js';
import { packed, type Tarball } from './support/tarball.js';
import { TemporaryProject } from './support/temporary-project.js';

let project: TemporaryProject;
let tarball: Tarball;
/** The package as npm unpacks it. */
let unpacked: string;

beforeAll(async () => {
  project = await TemporaryProject.create();
  tarball = packed();
  await project.install([tarball.path], { withoutPeers: true });
  unpacked = project.path('node_modules/nestjs-cluster');
});

afterAll(() => project.remove());

describe.each([
  { entry: 'dist/index.d.ts', names: PACKAGE_NAMES },
  { entry: 'dist/bootstrap/index.d.ts', names: BOOTSTRAP_NAMES },
  { entry: 'dist/integrations/schedule/index.d.ts', names: SCHEDULE_NAMES },
  { entry: 'dist/integrations/testing/index.d.ts', names: TESTING_NAMES },
  { entry: 'dist/hub/lock/index.d.ts', names: LOCK_NAMES },
  { entry: 'dist/hub/throttler/index.d.ts', names: THROTTLER_NAMES },
  { entry: 'dist/hub/cache/index.d.ts', names: CACHE_NAMES },
  { entry: 'dist/hub/events/index.d.ts', names: EVENTS_NAMES },
  { entry: 'dist/hub/socket.io/index.d.ts', names: SOCKET_IO_NAMES },
  { entry: 'dist/integrations/bullmq/index.d.ts', names: BULLMQ_NAMES },
])('$entry', ({ entry, names }) => {
  let exported: ExportedName[];

  beforeAll(() => {
    exported = exportsOf(join(unpacked, entry));
  });

  it('exports the names that are listed, each one on purpose', () => {
    const namesOf = (kind: ExportedName['kind']): string[] =>
      exported.filter((each) => each.kind === kind).map(({ name }) => name);

    expect({ values: namesOf('value'), types: namesOf('type') }).toEqual(names);
  });

  it('says what each of them is for', () => {
    expect(exported.filter(({ docs }) => docs === '').map(({ name }) => name)).toEqual([]);
  });
});

describe.each([
  { what: 'declarations', extension: '.d.ts' },
  { what: 'JavaScript', extension: '.js' },
])('the $what', ({ extension }) => {
  it('imports its own files, what it depends on, and builtins by their node: name', () => {
    const { dependencies, peerDependencies } = JSON.parse(
      readFileSync(join(unpacked, 'package.json'), 'utf8'),
    ) as Record<'dependencies' | 'peerDependencies', object>;
    const declared = new Set([...Object.keys(dependencies), ...Object.keys(peerDependencies)]);
    const allowed = (file: string, specifier: string): boolean => {
      if (specifier.startsWith('.')) {
        const target = join(dirname(file), specifier).replace(/\.js$/, extension);
        return tarball.files.includes(target);
      }
      return specifier.startsWith('node:')
        ? isBuiltin(specifier)
        : declared.has(packageNameOf(specifier));
    };
    const imports = tarball.files
      .filter((file) => file.endsWith(extension))
      .flatMap((file) => importsOf(join(unpacked, file)).map((specifier) => ({ file, specifier })));

    expect(imports.length).toBeGreaterThan(50);
    expect(imports.filter(({ file, specifier }) => !allowed(file, specifier))).toEqual([]);
  });
});

describe('the dependencies', () => {
  it('are all used', () => {
    const { dependencies } = JSON.parse(
      readFileSync(join(unpacked, 'package.json'), 'utf8'),
    ) as Record<'dependencies', object>;
    const used = new Set(
      tarball.files
        .filter((file) => file.endsWith('.js'))
        .flatMap((file) => importsOf(join(unpacked, file)))
        .map(packageNameOf),
    );

    expect(Object.keys(dependencies).filter((name) => !used.has(name))).toEqual([]);
  });

  it('run no script where they are installed', () => {
    const lock = project.path('node_modules/.package-lock.json');
    const { packages } = JSON.parse(readFileSync(lock, 'utf8')) as {
      packages: Record<string, { hasInstallScript?: boolean }>;
    };

    expect(existsSync(project.path('node_modules/valibot'))).toBe(true);
    expect(Object.keys(packages).filter((path) => packages[path]?.hasInstallScript)).toEqual([]);
  });
});

interface ExportedName {
  readonly name: string;
  readonly kind: 'value' | 'type';
  /** Its TSDoc, without the tags. */
  readonly docs: string;
}

/** Names that a declaration file exports, sorted. */
function exportsOf(path: string): ExportedName[] {
  const program = ts.createProgram([path], {
    module: ts.ModuleKind.NodeNext,
    target: ts.ScriptTarget.ES2023,
    skipLibCheck: true,
    types: [],
  });
  const checker = program.getTypeChecker();
  const file = checker.getSymbolAtLocation(program.getSourceFile(path)!);
  if (file === undefined) throw new Error(`${path} is not a module`);
  return checker
    .getExportsOfModule(file)
    .map((symbol): ExportedName => {
      const original =
        symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
      // A class that is exported with `export type` is a type.
      const typeOnly = symbol.declarations?.some(ts.isTypeOnlyExportDeclaration) ?? false;
      const isValue = !typeOnly && (original.flags & ts.SymbolFlags.Value) !== 0;
      return {
        name: symbol.name,
        kind: isValue ? 'value' : 'type',
        docs: ts.displayPartsToString(original.getDocumentationComment(checker)),
      };
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}
