import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The advice for the user if {@link ownFile} finds nothing. */
export const LEAVE_OUT_OF_BUNDLE =
  "nestjs-cluster is part of a bundle, without the files that it runs beside the app; leave it out of the bundle (external: ['nestjs-cluster']) and install it where the app runs";

/**
 * The path of a file of this package that runs as a process or a thread. If a bundler has put this
 * code into another file, the path is in the package that is installed next to the program.
 *
 * @param path within `dist`.
 * @returns `undefined` if the file does not exist.
 */
export function ownFile(path: string): string | undefined {
  return firstThere(besideThis(path), installedFor(process.argv[1], path));
}

/**
 * Like {@link ownFile}, but prefers the package that is installed for the program `script`, because
 * the release of this process may be removed while that program runs.
 */
export function ownFileFor(script: string, path: string): string | undefined {
  return firstThere(installedFor(script, path), besideThis(path));
}

function firstThere(...files: readonly (string | undefined)[]): string | undefined {
  return files.find((file) => file !== undefined && existsSync(file));
}

/** The path of a file of this package if the package is not bundled. */
export function besideThis(path: string): string | undefined {
  // A bundle in CommonJS may not have `import.meta.url`.
  const here = import.meta.url as string | undefined;
  return here && fileURLToPath(new URL(`../../${path}`, here));
}

function installedFor(script: string | undefined, path: string): string | undefined {
  try {
    const manifest = createRequire(script!).resolve('nestjs-cluster/package.json');
    return join(dirname(manifest), 'dist', path);
  } catch {
    return undefined;
  }
}
