import { metadataOf, routesOf } from '../../../observe/endpoints/controller-routes.js';
import {
  type AppView,
  classOf,
  fieldsOf,
  methodNamesOf,
} from '../../../observe/findings/app-view.js';
import { type Check, listed, type Observation } from '../../../observe/findings/finding.js';

/** The metadata key for the HTTP method of a handler, in Nest 11 and 12. */
const METHOD = 'method';
/** `RequestMethod.GET` of @nestjs/common. */
const GET = 0;

/** This package's health indicator. A controller that has it injected answers for all workers. */
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
  const handlers = app.controllers
    .filter(
      ({ instance }) => !fieldsOf(instance).some(([, dependency]) => classOf(dependency) === OURS),
    )
    .flatMap((controller) =>
      methodNamesOf(
        controller,
        (method, type) =>
          metadataOf(METHOD, method) === GET &&
          routesOf(type, method).some((route) => path.test(route)),
      ),
    );
  return handlers.length === 0 ? [] : [{ where: listed(handlers), problem }];
}
