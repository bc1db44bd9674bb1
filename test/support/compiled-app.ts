import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { QUICK_PACKAGES } from './quick-packages.mjs';
import { temporaryDirectory } from './temporary-directory.js';

/** Sources by their path without `.ts`. */
export type Sources = Readonly<Record<string, string>>;

/** An app in TypeScript, compiled as its user would, in a directory of the test. */
export class CompiledApp {
  readonly directory = temporaryDirectory();

  /** As ES modules, with the packages of the fixtures. */
  constructor(sources: Sources) {
    this.write('package.json', JSON.stringify({ type: 'module' }));
    symlinkSync(QUICK_PACKAGES, join(this.directory, 'node_modules'));
    for (const [name, source] of Object.entries(sources)) {
      const { outputText } = ts.transpileModule(source, {
        fileName: 'source.mts',
        compilerOptions,
      });
      this.write(`${name}.js`, outputText);
    }
  }

  /** Path of a compiled file, by the name of its source. */
  path(name: string): string {
    return join(this.directory, `${name}.js`);
  }

  /** Writes a file as it is. */
  write(path: string, text: string): void {
    writeFileSync(join(this.directory, path), text);
  }
}

const compilerOptions: ts.CompilerOptions = {
  module: ts.ModuleKind.NodeNext,
  target: ts.ScriptTarget.ES2023,
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
  strict: true,
  inlineSourceMap: true,
};
