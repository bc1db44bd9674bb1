import { statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import type { Command } from 'commander';

/** The argument of a command that starts an app. The default is the file that `nest build` writes. */
export const MAIN_ARGUMENT = ['[main]', 'the file that calls bootstrap()', 'dist/main.js'] as const;

/** The path of the app's main file. If the file does not exist, ends the command as wrongly used. */
export function mainFile(command: Command, main: string): string {
  return (
    found(main) ??
    command.error(
      `error: there is no file ${JSON.stringify(main)}; build the app first, or give the file that calls bootstrap()`,
    )
  );
}

/** Finds the file as `node` does, so `dist/main` finds `dist/main.js`. */
function found(main: string): string | undefined {
  const path = resolve(main);
  // Symbolic links are not resolved, because the app may look for its files next to the link.
  if (statSync(path, { throwIfNoEntry: false })?.isFile()) return path;
  try {
    return createRequire(path).resolve(path);
  } catch {
    return undefined;
  }
}
