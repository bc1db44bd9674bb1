import {
  type AppView,
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
    return prototypesOf(type)
      .flatMap((owner) => Object.entries(Object.getOwnPropertyDescriptors(owner)))
      .filter(([, { value }]) => typeof value === 'function' && answers(type, value, path))
      .map(([name]) => ({ where: `${type.name}.${name}() (${module})`, problem }));
  });
}

/** Whether a method answers GET on a path. Prefixes and versions, which belong to the app, are ignored. */
function answers(type: Class, method: object, path: RegExp): boolean {
  if (metadataOf('method', method) !== GET) return false;
  return pathsOf(type).some((prefix) =>
    pathsOf(method).some((end) => path.test(`/${prefix}/${end}`.replaceAll(/\/+/g, '/'))),
  );
}

function knowsCluster(controller: unknown): boolean {
  return Object.values(Object(controller)).some(
    (each) => classOf(each) === 'ClusterHealthIndicator',
  );
}

function pathsOf(target: object): string[] {
  return [metadataOf('path', target) ?? []].flat().filter((path) => typeof path === 'string');
}
