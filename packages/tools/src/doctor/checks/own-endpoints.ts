import {
  type AppView,
  at,
  type Check,
  type Class,
  classOf,
  metadataOf,
  prototypesOf,
} from '../finding.js';

/** `RequestMethod.GET` of @nestjs/common, the value of the metadata 'method'. */
const GET = 0;

export const ownHealth: Check = {
  name: 'own-health',
  remedy:
    'remove it and use /health of ClusterModule.forRoot(), or inject ClusterHealthIndicator, which knows all workers',
  look: (app) =>
    find(
      app,
      /^\/healthz?(\/(live|ready))?\/?$/i,
      'it answers for the worker that gets the request, and does not know the others',
    ),
};

export const ownMetrics: Check = {
  name: 'own-metrics',
  remedy: 'remove it and use /metrics of ClusterModule.forRoot(), which merges all workers',
  look: (app) => find(app, /^\/metrics\/?$/i, 'each scrape reads the counters of another worker'),
};

function find({ controllers }: AppView, path: RegExp, problem: string) {
  return controllers.flatMap(({ type, instance, module }) => {
    if (type === undefined || knowsCluster(instance)) return [];
    return methodsOf(type)
      .filter(([, method]) => metadataOf('method', method) === GET)
      .filter(([, method]) => routesOf(type, method).some((route) => path.test(route)))
      .map(([name]) => ({ where: `${type.name}.${name}() (${module})`, problem }));
  });
}

function knowsCluster(controller: unknown): boolean {
  return Object.values(Object(controller)).some(
    (each) => classOf(each) === 'ClusterHealthIndicator',
  );
}

function methodsOf(type: Class): [name: string, method: object][] {
  const names = new Set(prototypesOf(type).flatMap((owner) => Object.getOwnPropertyNames(owner)));
  names.delete('constructor');
  return [...names]
    .map((name): [string, unknown] => [name, at(type.prototype, name)])
    .filter((each): each is [string, object] => typeof each[1] === 'function');
}

/** The paths of a controller's method without prefixes and versions, which belong to the app. */
function routesOf(type: Class, method: object): string[] {
  return pathsOf(type).flatMap((prefix) =>
    pathsOf(method).map((end) => `/${prefix}/${end}`.replaceAll(/\/+/g, '/')),
  );
}

function pathsOf(target: object): string[] {
  return [metadataOf('path', target) ?? []].flat().filter((path) => typeof path === 'string');
}
