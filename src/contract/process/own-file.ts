import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { OWN_DIRECTORY } from './own-directory.js';

/** The error message if {@link ownFile} finds no file. */
export const LEAVE_OUT_OF_BUNDLE =
  "nestjs-cluster was bundled without the files for its threads and processes; exclude it and Nest from the bundle (packages: 'external' for esbuild, externals: [nodeExternals()] for webpack and rspack), and install both where the app runs";

/** The files in `dist/programs`. Each runs as a process or a thread. */
type ProgramFile = 'early-boot.cjs' | 'offload-thread.js' | 'watchdog-thread.cjs';

/** A file of this package, by its path within the package. */
export type OwnFile = `dist/programs/${ProgramFile}` | 'package.json';

/**
 * The path of a file of this package. If a bundler has put this code into another file, the path is
 * in the package installed next to the program.
 *
 * @param script the script of another program. The package installed for that program comes first,
 *   because this process's release may be removed while that program runs.
 * @returns `undefined` if the file does not exist.
 */
export function ownFile(path: OwnFile, script?: string): string | undefined {
  const files = [besideThis(path), installedFor(script ?? process.argv[1], path)];
  if (script !== undefined) files.reverse();
  return files.find((file) => file !== undefined && existsSync(file));
}

/** The path of a file of this package if the package is not bundled. */
export function besideThis(path: OwnFile): string | undefined {
  return OWN_DIRECTORY && join(OWN_DIRECTORY, '..', path);
}

function installedFor(script: string | undefined, path: OwnFile): string | undefined {
  try {
    const manifest = createRequire(script!).resolve('nestjs-cluster/package.json');
    return join(dirname(manifest), path);
  } catch {
    return undefined;
  }
}
