import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { ClusterConfigurationError } from '../contract/errors/index.js';

/**
 * Explains the error of a loader that does not find `./app.module.ts` when it is imported by the
 * name of its output, `./app.module.js`. TypeScript finds the file. A loader that replaces
 * `require()` (@swc-node/register) may only report that the module does not exist.
 *
 * @returns an error that says what to do, or the given error if it is of another kind.
 */
export function explainLostImport(error: unknown): unknown {
  const { code, message, requireStack } = (error ?? {}) as NodeJS.ErrnoException & {
    readonly requireStack?: readonly string[];
  };
  const [from] = requireStack ?? [];
  const [, wanted] = /^Cannot find module '(\.[^']*)\.js'/.exec(message ?? '') ?? [];
  if (code !== 'MODULE_NOT_FOUND' || from === undefined || wanted === undefined) return error;
  if (!existsSync(join(dirname(from), `${wanted}.ts`))) return error;
  return new ClusterConfigurationError(
    `${from} imports '${wanted}.js', which is there as TypeScript, and the loader that the app was started by does not find it; ` +
      `import '${wanted}' at the top of ${basename(from)}, or start the app from the output of tsc or SWC`,
    { cause: error },
  );
}
