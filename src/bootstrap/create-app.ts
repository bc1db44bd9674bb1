import type { INestApplicationContext } from '@nestjs/common';
import { ClusterConfigurationError } from '../contract/errors/errors.js';
import { show } from '../contract/options/checks.js';
import { noteAppImport } from '../contract/snapshot/app-import.js';
import type { AppFactory, CreateApp, CreateAppContext } from './cluster-runtime.interface.js';

type Exports = Readonly<Record<string, unknown>>;

/**
 * Creates the app with the function passed to `bootstrap()`, or with the module it returns.
 *
 * @throws ClusterConfigurationError for any other result. Does not catch the function's errors.
 */
export async function createAppBy(
  createApp: AppFactory,
  context: CreateAppContext,
): Promise<INestApplicationContext> {
  const created: unknown = await createApp(context);
  if (isApp(created)) return created;
  const create = factoryIn(created);
  if (create !== undefined) {
    noteAppImport(createApp);
    return await createAppBy(create, context);
  }
  throw new ClusterConfigurationError(
    `createApp() returned ${describe(created)} instead of an app; return the result of NestFactory.create(), createMicroservice() or createApplicationContext(), or write bootstrap(() => import('./app.js')) and export createApp from app.ts`,
  );
}

/** Checks only the required methods, because tests may use a fake app. */
function isApp(value: unknown): value is INestApplicationContext {
  const { init, close } = (value ?? {}) as Exports;
  return typeof init === 'function' && typeof close === 'function';
}

/** Also searches the default export, which contains all exports of an imported CommonJS module. */
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
