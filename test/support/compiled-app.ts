import { transformSync } from '@swc/wasm';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import ts from 'typescript';
import { QUICK_PACKAGES } from './quick-packages.mjs';

const root = join(import.meta.dirname, '../..');

/** How an app of a user is built. */
export interface BuildOptions {
  /** Default `tsc`. */
  readonly compiler?: 'tsc' | 'swc';
  /** Default `esm`. */
  readonly format?: 'esm' | 'commonjs';
  /** Helpers come from tslib instead of being in each file (tsc). Default false. */
  readonly importHelpers?: boolean;
  /** Default 12, in few files; see `quick-packages.mjs`. */
  readonly nest?: 11 | 12;
}

/** Sources by their path without `.ts`. */
export type Sources = Readonly<Record<string, string>>;

/** An app in TypeScript, compiled as its user would, in a directory of its own. */
export class CompiledApp {
  readonly directory: string;

  constructor(
    sources: Sources,
    private readonly options: BuildOptions = {},
  ) {
    this.directory = mkdtempSync(join(tmpdir(), 'nestjs-cluster-'));
    const { format = 'esm' } = options;
    this.write('package.json', JSON.stringify({ type: format === 'esm' ? 'module' : 'commonjs' }));
    this.#link();
    this.add(sources);
  }

  /** Path of a compiled file, by the name of its source. */
  path(name: string): string {
    return join(this.directory, `${name}.js`);
  }

  /** Compiles some more. */
  add(sources: Sources): void {
    for (const [name, source] of Object.entries(sources)) {
      this.write(`${name}.js`, compile(source, this.options));
    }
  }

  /** Writes a file as it is. */
  write(path: string, text: string): void {
    const absolute = join(this.directory, path);
    mkdirSync(dirname(absolute), { recursive: true });
    writeFileSync(absolute, text);
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** Gives the app the packages of the fixtures. */
  #link(): void {
    const installed = join(root, 'node_modules');
    const target = join(this.directory, 'node_modules');
    if (this.options.nest !== 11) return symlinkSync(QUICK_PACKAGES, target);
    const nest11 = join(root, 'test/fixtures/nest-11/node_modules');
    mkdirSync(target);
    for (const name of ['@nestjs', 'nestjs-cluster', 'tslib']) {
      symlinkSync(join(nest11, name), join(target, name));
    }
    for (const name of ['reflect-metadata', 'rxjs']) {
      symlinkSync(join(installed, name), join(target, name));
    }
  }
}

/** @returns what its compiler makes of a source; each file alone, as all of them can. */
function compile(
  source: string,
  { compiler = 'tsc', format = 'esm', importHelpers = false }: BuildOptions,
): string {
  if (compiler === 'swc') {
    return transformSync(source, {
      filename: 'source.ts',
      jsc: {
        parser: { syntax: 'typescript', decorators: true },
        transform: { legacyDecorator: true, decoratorMetadata: true },
        target: 'es2022',
        keepClassNames: true,
      },
      module: { type: format === 'esm' ? 'es6' : 'commonjs' },
      sourceMaps: 'inline',
    }).code;
  }
  return ts.transpileModule(source, {
    // The extension says what package.json would say.
    fileName: format === 'esm' ? 'source.mts' : 'source.cts',
    compilerOptions: { ...COMPILER_OPTIONS, importHelpers, inlineSourceMap: true },
  }).outputText;
}

const COMPILER_OPTIONS: ts.CompilerOptions = {
  module: ts.ModuleKind.NodeNext,
  target: ts.ScriptTarget.ES2023,
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
  strict: true,
};
