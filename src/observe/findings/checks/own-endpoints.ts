import {
  type AppView,
  type Class,
  classOf,
  fieldsOf,
  type Member,
  metadataOf,
  methodsOf,
} from '../app-view.js';
import type { Check } from '../check.js';
import { listed, type Observation } from '../finding.js';

// Nest's own, the same in 11 and 12.
const PATH = 'path';
const METHOD = 'method';
/** `RequestMethod` of @nestjs/common. */
const GET = 0;

/** An indicator of this package: with it a controller of the app's answers for all workers. */
const OURS = 'ClusterHealthIndicator';

export const ownHealth: Check = {
  name: 'own-health',
  level: 'problem',
  remedy:
    'leave it to ClusterModule.forRoot(), or check ClusterHealthIndicator in it, which knows all workers',
  docs: 'docs/health.md',
  look: (app) =>
    observe(
      app,
      /^\/healthz?(\/|$)/,
      'it answers for the one worker that gets the request, and knows nothing of the others',
    ),
};

export const ownMetrics: Check = {
  name: 'own-metrics',
  level: 'problem',
  remedy: 'leave it to ClusterModule.forRoot(), which merges the registries of all workers',
  docs: 'docs/metrics.md',
  look: (app) =>
    observe(
      app,
      /^\/metrics$/,
      'each scrape reads the counters of another worker, which seem to jump',
    ),
};

function observe(app: AppView, path: RegExp, problem: string): Observation[] {
  const handlers = app.controllers
    .filter(
      ({ instance }) => !fieldsOf(instance).some(([, dependency]) => classOf(dependency) === OURS),
    )
    .flatMap((controller) => handlersOf(controller, path));
  return handlers.length === 0 ? [] : [{ where: listed(handlers), problem }];
}

function handlersOf({ type, module }: Member, path: RegExp): string[] {
  if (type === undefined) return [];
  return methodsOf(type)
    .filter(([, method]) => metadataOf(METHOD, method) === GET)
    .filter(([, method]) => routesOf(type, method).some((route) => path.test(route)))
    .map(([name]) => `${type.name}.${name}() (${module})`);
}

/** Before prefixes and versions, which are not the controller's. */
function routesOf(type: Class, method: object): string[] {
  return pathsOf(type).flatMap((prefix) =>
    pathsOf(method).map((end) =>
      `/${prefix}/${end}`
        .replaceAll(/\/+/g, '/')
        .replace(/(?<=.)\/$/, '')
        .toLowerCase(),
    ),
  );
}

function pathsOf(subject: object): string[] {
  return [metadataOf(PATH, subject) ?? []].flat().filter((path) => typeof path === 'string');
}
