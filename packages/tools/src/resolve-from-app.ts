import { createRequire } from 'node:module';

/** The file of a package: the app's in the working directory, else the one of this package. */
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
