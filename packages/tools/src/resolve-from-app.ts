import { createRequire } from 'node:module';

/** Resolves a package from the working directory, or else from this package. */
export function resolveFromApp(specifier: string): string | undefined {
  for (const from of [`${process.cwd()}/_`, import.meta.url]) {
    try {
      return createRequire(from).resolve(specifier);
    } catch {
      // not installed there
    }
  }
  return undefined;
}
