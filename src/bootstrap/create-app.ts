import { existsSync, statSync } from 'node:fs';
import { basename, dirname, join, relative, sep } from 'node:path';
import type { INestApplicationContext } from '@nestjs/common';
import { ClusterConfigurationError, messageOf } from '../contract/errors/index.js';
import { show } from '../contract/options/schema.js';
import { noteAppImport } from '../contract/snapshot/app-import.js';
import { explainDoubleClass } from '../contract/process/two-copies.js';
import type { AppFactory, CreateApp, CreateAppContext } from './cluster-runtime.interface.js';

type Exports = Readonly<Record<string, unknown>>;

/**
 * Creates the app by the user's function, or by the module that the function returns.
 *
 * @throws ClusterConfigurationError for any other result, and any error of the user's function.
 */
export async function createAppBy(
  createApp: AppFactory,
  context: CreateAppContext,
): Promise<INestApplicationContext> {
  let created: unknown;
  try {
    created = await createApp(context);
  } catch (error) {
    const doubled = explainDoubleClass(messageOf(error));
    if (doubled !== undefined) throw new ClusterConfigurationError(doubled, { cause: error });
    throw explainLostImport(error);
  }
  if (isApp(created)) return created;
  const create = factoryIn(created);
  if (create !== undefined) {
    noteAppImport(createApp);
    return await createAppBy(create, context);
  }
  throw new ClusterConfigurationError(
    `createApp() gave ${describe(created)}, and not an app; return what NestFactory.create(), createMicroservice() or createApplicationContext() gives, or write bootstrap(() => import('./app.js')), and export createApp from app.ts`,
  );
}

/** Checks only the methods that are needed, because tests may use a fake app. */
function isApp(value: unknown): value is INestApplicationContext {
  const { init, close } = (value ?? {}) as Exports;
  return typeof init === 'function' && typeof close === 'function';
}

/** A module's `createApp` or default export. An imported CommonJS module has both in its default export. */
function factoryIn(value: unknown): CreateApp<INestApplicationContext> | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const exports = value as Exports;
  const inner = (exports['default'] ?? {}) as Exports;
  return [exports['createApp'], exports['default'], inner['createApp'], inner['default']].find(
    (each) => typeof each === 'function',
  ) as CreateApp<INestApplicationContext> | undefined;
}

function describe(value: unknown): string {
  if (typeof value !== 'object' || value === null) return show(value);
  const names = Object.keys(value).slice(0, 5);
  return names.length === 0 ? 'an object without exports' : `an object with ${names.join(', ')}`;
}

type LoadError = NodeJS.ErrnoException & { readonly requireStack?: readonly string[] };

/**
 * Explains why an import of the app found no file, although the file is there under another name.
 *
 * @returns an error that says what to write, or the given error if it is of another kind.
 */
function explainLostImport(error: unknown): unknown {
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
