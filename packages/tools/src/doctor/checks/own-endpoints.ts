import { type AppView, classOf, type Member, metadataOf } from '../app-view.js';
import type { Check, Observation } from '../finding.js';

/** `RequestMethod.GET` of @nestjs/common. */
const GET = 0;

/** The health indicator of nestjs-cluster. A controller that has it injected answers for all workers. */
const OURS = 'ClusterHealthIndicator';

export const ownHealth: Check = {
  name: 'own-health',
  remedy:
    'leave it to ClusterModule.forRoot(), or check ClusterHealthIndicator in it, which knows all workers',
  look: (app) =>
    observe(
      app,
      /^\/healthz?(\/(live|ready))?\/?$/i,
      'it answers for the one worker that gets the request, and knows nothing of the others',
    ),
};

export const ownMetrics: Check = {
  name: 'own-metrics',
  remedy: 'leave it to ClusterModule.forRoot(), which merges the registries of all workers',
  look: (app) =>
    observe(
      app,
      /^\/metrics\/?$/i,
      'each scrape reads the counters of another worker, which seem to jump',
    ),
};

function observe(app: AppView, path: RegExp, problem: string): Observation[] {
  return app.controllers
    .filter(({ instance }) => !Object.values(Object(instance) as object).some(isOurs))
    .flatMap((controller) => handlersOf(controller, path))
    .map((where) => ({ where, problem }));
}

function isOurs(dependency: unknown): boolean {
  return classOf(dependency) === OURS;
}

/** The GET handlers of a controller whose path, without prefixes and versions, matches. */
function handlersOf({ type, module }: Member, path: RegExp): string[] {
  if (type === undefined) return [];
  const prototype = type.prototype as object;
  const pathsOf = (target: object) => [metadataOf('path', target) ?? []].flat() as string[];
  return Object.getOwnPropertyNames(prototype).flatMap((name) => {
    const { value: method } = Object.getOwnPropertyDescriptor(prototype, name)!;
    if (typeof method !== 'function' || metadataOf('method', method as object) !== GET) return [];
    const routes = pathsOf(type).flatMap((prefix) =>
      pathsOf(method as object).map((end) => `/${prefix}/${end}`.replaceAll(/\/+/g, '/')),
    );
    return routes.some((route) => path.test(route)) ? `${type.name}.${name}() (${module})` : [];
  });
}
