import { existsSync, statSync } from 'node:fs';
import { basename, dirname, join, relative, sep } from 'node:path';
import { ClusterConfigurationError } from '../contract/errors/index.js';

type LoadError = NodeJS.ErrnoException & { readonly requireStack?: readonly string[] };

/**
 * Explains why an import of the app found no file, although the file is there under another name.
 *
 * @returns an error that says what to write, or the given error if it is of another kind.
 */
export function explainLostImport(error: unknown): unknown {
  const lost = (error ?? {}) as LoadError;
  const explained = explainLostTypeScript(lost) ?? explainIncompleteName(lost);
  return explained === undefined
    ? error
    : new ClusterConfigurationError(explained, { cause: error });
}

/**
 * Explains the error of a loader that does not find `./app.module.ts` when it is imported by the
 * name of its output, `./app.module.js`. TypeScript finds the file. A loader that replaces
 * `require()` (@swc-node/register) may only report that the module does not exist.
 */
function explainLostTypeScript({ code, message, requireStack }: LoadError): string | undefined {
  const [from] = requireStack ?? [];
  const [, wanted] = /^Cannot find module '(\.[^']*)\.js'/.exec(message) ?? [];
  if (code !== 'MODULE_NOT_FOUND' || from === undefined || wanted === undefined) return undefined;
  if (!existsSync(join(dirname(from), `${wanted}.ts`))) return undefined;
  return (
    `${from} imports '${wanted}.js', which is there as TypeScript, and the loader that the app was started by does not find it; ` +
    `import '${wanted}' at the top of ${basename(from)}, or start the app from the output of tsc or SWC`
  );
}

/**
 * Explains Node's error for `import('./app')` and `import('./app.ts')`. An `import()` needs the whole
 * name of the output, also in CommonJS. SWC and esbuild do not check this, tsc does.
 */
function explainIncompleteName({ message }: LoadError): string | undefined {
  const [, wanted, from] =
    /^(?:Cannot find module|Directory import) '(.+?)' .*\bimported from (.+)/.exec(message) ?? [];
  if (wanted === undefined || from === undefined) return undefined;
  const found = ['.js', '.mjs', '.cjs', `${sep}index.js`]
    .map((end) => wanted.replace(/\.ts$/, '') + end)
    .find((file) => statSync(file, { throwIfNoEntry: false })?.isFile());
  if (found === undefined) return undefined;
  return `${from} imports '${specifier(from, wanted)}', and Node does not find a file of this name; write '${specifier(from, found)}' there, also in TypeScript`;
}

function specifier(from: string, file: string): string {
  const path = relative(dirname(from), file).replaceAll(sep, '/');
  return path.startsWith('.') ? path : `./${path}`;
}
