import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
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

/** Modules outside the package that `entry` may load, at once or later, through any of its files. */
export function foreignImportsOf(entry: string): Set<string> {
  const foreign = new Set<string>();
  const seen = new Set<string>();
  const visit = (path: string): void => {
    if (seen.has(path)) return;
    seen.add(path);
    for (const specifier of importsOf(path)) {
      if (specifier.startsWith('.')) visit(join(dirname(path), specifier));
      else foreign.add(specifier);
    }
  };
  visit(entry);
  return foreign;
}

/** `@scope/name/file` → `@scope/name`. */
export function packageNameOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}
