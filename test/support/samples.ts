import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { readDocument } from './documents.js';
import { PACKAGES_BESIDE } from './packages-beside.mjs';

const ROOT = join(import.meta.dirname, '../..');

/** A block of TypeScript in a page. */
export interface Sample {
  readonly page: string;
  /** The line of the page above the first line of the code. */
  readonly line: number;
  readonly code: string;
}

/** Packages whose exports a sample may use without importing them. */
const PACKAGES = [
  'nestjs-cluster',
  '@nestjs-cluster/bullmq',
  'nestjs-cluster/schedule',
  '@nestjs/common',
  '@nestjs/core',
  '@nestjs/microservices',
  '@nestjs/schedule',
  '@nestjs/terminus',
  '@nestjs/testing',
  '@nestjs/throttler',
  '@nestjs/cache-manager',
  '@nestjs/websockets',
];

/** Packages that samples import and that are not installed here. Their exports have any type. */
const NOT_INSTALLED = [
  'nestjs-pino',
  'unplugin-swc',
  'helmet',
  '@prisma/client',
  '@prisma/adapter-pg',
  '@sentry/nestjs',
  '@acme/cluster',
];

/** Names of this package, which are never taken for a name of the reader's app. */
const OURS = /Cluster|CpuBound|EveryWorker|bootstrap|(EventLoop|Offload)Health/;

/** Names that all pages use for the same object, with its type. */
const CONVENTIONAL: Readonly<Record<string, string>> = {
  createApp: "() => Promise<import('@nestjs/common').INestApplication>",
  cluster: "import('nestjs-cluster').ClusterService",
  events: "import('@nestjs-cluster/shared/events').ClusterEvents",
  pubSub: "import('@nestjs-cluster/shared/events').ClusterPubSub",
};

/** A file of the reader's app. */
const APP = `import type { INestApplication } from '@nestjs/common';
export declare class AppModule {}
export declare function createApp(): Promise<INestApplication>;`;

const pathOf = (name: string): string => join(ROOT, 'docs', name);
const EXPORTS_FILE = pathOf('exports.ts');
const FOREIGN_FILE = pathOf('foreign.d.ts');

/** This package, and those in packages/. */
const PACKAGE_FOLDERS = ['.', ...PACKAGES_BESIDE.map((name) => join('packages', name))];

/** Errors of TypeScript about a name that nothing declares. */
const UNDECLARED = new Set([2304, 2503, 2552, 18004]);

/** An import of the app's file without its extension, which is right in CommonJS. */
const WITHOUT_EXTENSION = /^Cannot find module '\.\//;

export function samplesOf(page: string): Sample[] {
  const text = readDocument(page);
  // Its samples would not find the packages.
  if (PACKAGES_BESIDE.length === 0 && /@nestjs-cluster\/|packages\//.test(text)) return [];
  return [...text.matchAll(/^```ts\n(.*?)^```$/gms)].map(({ 1: code, index }) => ({
    page,
    line: text.slice(0, index).split('\n').length,
    code: code!,
  }));
}

/**
 * Compiles samples against the sources of this package and of those in packages/.
 *
 * A sample may be the members of a class, or the body of a function. It may leave out imports of
 * {@link PACKAGES} and of other samples of its page. Names and members of the reader's app have any
 * type.
 *
 * @returns the errors of each sample, as `page:line: message`.
 */
export function errorsOf(samples: readonly Sample[]): string[][] {
  const paths = samples.map((_, i) => pathOf(`sample-${i}.ts`));
  const files = new Map([
    [EXPORTS_FILE, PACKAGES.map((name, i) => `export * as p${i} from '${name}';`).join('\n')],
    [FOREIGN_FILE, NOT_INSTALLED.map((name) => `declare module '${name}';`).join('\n')],
    ...samples.map(({ code }, i) => [paths[i]!, wholeOf(code)] as const),
  ]);
  const host = hostOf(files);
  const first = programOf(files, host);
  const imports = importsOf(first);
  for (const [i, path] of paths.entries()) {
    const undeclared = diagnosticsOf(first, path).filter(({ code }) => UNDECLARED.has(code));
    const names = new Set(undeclared.map((each) => /'(\w+)'/.exec(messageOf(each))![1]!));
    const declarations = [...names].map(
      (name) => imports.get(name) ?? importOfPage(name, samples, i) ?? declarationOf(name),
    );
    // At the end, so that the line numbers stay.
    const added = [...declarations, ...openClasses(first.getSourceFile(path)!)];
    files.set(path, [files.get(path), ...added].join('\n'));
  }
  const program = programOf(files, host, first);
  return samples.map(({ page, line }, i) =>
    diagnosticsOf(program, paths[i]!).map((each) => {
      const row = each.file!.getLineAndCharacterOfPosition(each.start!).line;
      return `${page}:${line + row + 1}: ${messageOf(each)}`;
    }),
  );
}

/** A whole file with the code of a sample. */
function wholeOf(code: string): string {
  const source = ts.createSourceFile('sample.ts', code, ts.ScriptTarget.ES2023);
  const { parseDiagnostics } = source as unknown as { parseDiagnostics: readonly unknown[] };
  const isMembers = parseDiagnostics.length > 0;
  const isBody = source.statements.some((each) => ts.isReturnStatement(each));
  if (!isMembers && !isBody) return `${code}export {};`;
  const [imports = ''] = /^(import [^\n]*\n|\/\/[^\n]*\n|\n)*/.exec(code)!;
  const start = isMembers ? 'class Sample' : 'async function sample()';
  return `${imports}export ${start} { ${code.slice(imports.length)} }`;
}

/** The import of each name that {@link PACKAGES} export. */
function importsOf(program: ts.Program): Map<string, string> {
  const checker = program.getTypeChecker();
  const file = checker.getSymbolAtLocation(program.getSourceFile(EXPORTS_FILE)!)!;
  const imports = new Map<string, string>();
  for (const [i, each] of checker.getExportsOfModule(file).entries()) {
    for (const symbol of checker.getExportsOfModule(checker.getAliasedSymbol(each))) {
      const isAlias = symbol.flags & ts.SymbolFlags.Alias;
      const { flags } = isAlias ? checker.getAliasedSymbol(symbol) : symbol;
      const name = flags & ts.SymbolFlags.Value ? symbol.name : `type ${symbol.name}`;
      if (imports.has(symbol.name)) continue;
      imports.set(symbol.name, `import { ${name} } from '${PACKAGES[i]}';`);
    }
  }
  return imports;
}

/** The import of a class that another sample of the same page exports. */
function importOfPage(name: string, samples: readonly Sample[], i: number): string | undefined {
  const from = samples.findIndex(
    ({ page, code }, j) =>
      page === samples[i]!.page && j !== i && code.includes(`export class ${name} `),
  );
  return from < 0 ? undefined : `import { ${name} } from './sample-${from}.js';`;
}

function declarationOf(name: string): string {
  if (name in CONVENTIONAL) return `declare const ${name}: ${CONVENTIONAL[name]};`;
  return OURS.test(name) ? '' : `declare const ${name}: any; type ${name} = any;`;
}

/** Declarations that let the classes of a sample have members that the sample does not show. */
function openClasses({ statements }: ts.SourceFile): string[] {
  return statements.filter(ts.isClassDeclaration).map(({ name, modifiers = [] }) => {
    const isExported = modifiers.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);
    return `${isExported ? 'export ' : ''}interface ${name!.text} { [member: string]: any }`;
  });
}

function diagnosticsOf(program: ts.Program, path: string): readonly ts.Diagnostic[] {
  const file = program.getSourceFile(path)!;
  const found = [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)];
  return found.filter((each) => !WITHOUT_EXTENSION.test(messageOf(each)));
}

function messageOf({ messageText }: ts.Diagnostic): string {
  return ts.flattenDiagnosticMessageText(messageText, ' ');
}

const OPTIONS: ts.CompilerOptions = {
  ...ts.convertCompilerOptionsFromJson(
    JSON.parse(readFileSync(join(ROOT, 'tsconfig.json'), 'utf8')).compilerOptions,
    ROOT,
  ).options,
  allowUnusedLabels: false, // an object that prettier has taken for a block has them
  noUnusedLocals: false,
  noUnusedParameters: false,
  declaration: false,
  // Our packages are found in their sources.
  paths: Object.fromEntries(PACKAGE_FOLDERS.flatMap(entriesOf)),
};

function programOf(
  files: ReadonlyMap<string, string>,
  host: ts.CompilerHost,
  oldProgram?: ts.Program,
): ts.Program {
  const rootNames = [...files.keys()];
  return ts.createProgram({ rootNames, options: OPTIONS, host, ...(oldProgram && { oldProgram }) });
}

/**
 * A host that has `files` in memory. A TypeScript file that is nowhere is one of the reader's app.
 */
function hostOf(files: ReadonlyMap<string, string>): ts.CompilerHost {
  const host = ts.createCompilerHost(OPTIONS);
  const ofDisk = { ...host };
  const parsed = new Map<string, ts.SourceFile | undefined>();
  const isOfReader = (path: string) =>
    path.endsWith('.ts') &&
    !path.includes('.d.') &&
    !path.includes('/node_modules/') &&
    !ofDisk.fileExists(path);
  host.fileExists = (path) => files.has(path) || isOfReader(path) || ofDisk.fileExists(path);
  host.getSourceFile = (path, options, ...rest) => {
    const text = files.get(path) ?? (isOfReader(path) ? APP : undefined);
    if (text !== undefined) return ts.createSourceFile(path, text, options);
    if (!parsed.has(path)) parsed.set(path, ofDisk.getSourceFile(path, options, ...rest));
    return parsed.get(path);
  };
  return host;
}

/** The source of each entry of a package, by its specifier. */
function entriesOf(folder: string): [string, string[]][] {
  const path = join(ROOT, folder, 'package.json');
  const { name, exports = {} } = JSON.parse(readFileSync(path, 'utf8')) as {
    name: string;
    exports?: Record<string, { default: { default: string } } | string>;
  };
  const sourceOf = (file: string) => join(ROOT, folder, file.replace(/dist\/(.*)js$/, 'src/$1ts'));
  return Object.entries(exports).flatMap(([entry, target]) =>
    typeof target === 'string' ? [] : [[join(name, entry), [sourceOf(target.default.default)]]],
  );
}
