import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { compileFunction } from 'node:vm';
import ts from 'typescript';

const root = join(import.meta.dirname, '../..');

/** Loads a `.cts` file without a build, because vitest loads only ES modules. */
export function loadCommonJs(path: string): unknown {
  const file = join(root, path);
  const { outputText } = ts.transpileModule(readFileSync(file, 'utf8'), {
    fileName: file,
    compilerOptions: { module: ts.ModuleKind.Node20, target: ts.ScriptTarget.ES2023 },
  });
  const module = { exports: {} };
  const load = compileFunction(outputText, ['require', 'module', 'exports'], { filename: file });
  (load as (...args: unknown[]) => void)(createRequire(file), module, module.exports);
  return module.exports;
}
