import { readFileSync } from 'node:fs';
import ts from 'typescript';

/** Everything a file names as a module: `import` in every form, `require()`, `require.resolve()`, references. */
export function importsOf(path: string): string[] {
  const source = readFileSync(path, 'utf8');
  const { importedFiles, referencedFiles, typeReferenceDirectives } = ts.preProcessFile(
    source,
    true,
    true,
  );
  const imported = [...importedFiles, ...referencedFiles, ...typeReferenceDirectives].map(
    ({ fileName }) => fileName,
  );
  const resolved = [...source.matchAll(/\brequire\.resolve\('([^']+)'\)/g)].map(
    ([, name]) => name!,
  );
  return [...imported, ...resolved];
}

/** `@scope/name/file` → `@scope/name`. */
export function packageNameOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}
