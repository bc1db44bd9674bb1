import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { ClusterConfigurationError } from '../contract/errors/index.js';

/**
 * TypeScript finds `./app.module.ts` by its later name, `./app.module.js`. A loader that replaces
 * `require()` (@swc-node/register) may not find it, and says only that the module does not exist.
 *
 * @returns what to do about it, for an error of that kind; else the error itself.
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
