import type { IncomingMessage } from 'node:http';
import type { AbstractHttpAdapter } from '@nestjs/core';

/** Finds the template (`/cats/:id`) of the route that answered a request. Never throws: nothing would catch the error. */
export type RouteTemplateReader = (request: IncomingMessage) => string;

/** Label of requests that no route matched. Clients choose these paths, so their number has no limit. */
export const UNMATCHED = 'unmatched';

/** Label of everything that has no label of its own. */
export const OTHER_ROUTE = 'other';

/** Label of all routes in routers that are mounted under a path, because such a route does not know the path of its router. */
const NESTED = '*';

/**
 * The property of an Express route or a Fastify request that holds its label. A WeakMap would
 * double the cost of a request.
 */
const TEMPLATE = Symbol('nestjs-cluster.route');

/**
 * Creates a reader for the app's adapter. Must be called before the app registers its routes,
 * because Fastify reports a template only at registration.
 *
 * A template is always text of the app, never of a client, so there are at most as many templates
 * as the app has routes.
 */
export function createRouteTemplateReader(adapter: AbstractHttpAdapter): RouteTemplateReader {
  return adapter.getType() === 'fastify'
    ? createFastifyReader(adapter)
    : createExpressReader(adapter);
}

/** The last matching route, which Express sets on a request. */
interface ExpressRoute {
  readonly path: unknown;
  readonly stack: readonly unknown[];
  readonly methods?: { readonly _all?: boolean };
  [TEMPLATE]?: string;
}

/** An entry of an Express router: each `use()` and each route has one (router 2.x, `lib/layer.js`). */
interface Layer {
  readonly route?: unknown;
  readonly handle?: unknown;
  /** Whether the layer is mounted at `/`. */
  readonly slash?: boolean;
}

/**
 * Nest's routes are in the app's own router, and their paths include every prefix. A route in a
 * router or sub-app that is mounted under a path has only a part of the path, so all such routes
 * share one label.
 */
function createExpressReader(adapter: AbstractHttpAdapter): RouteTemplateReader {
  return (request) => {
    const { route } = request as { route?: ExpressRoute | null };
    // Any other value of `route` may come from a client.
    if (!Array.isArray(route?.stack)) return UNMATCHED;
    return (route[TEMPLATE] ??= templateOf(route, adapter.getInstance<{ router?: object }>()));
  };
}

function templateOf(route: ExpressRoute, { router }: { readonly router?: object }): string {
  if (knows(router, route)) return String(route.path);
  // Nest 12 answers 404 under a global prefix from a router with this one route.
  return route.path === '*path' && route.methods?._all === true ? UNMATCHED : NESTED;
}

/** Whether a router has the route itself, or in a nested router that is mounted at `/`. */
function knows(router: unknown, route: ExpressRoute): boolean {
  const { stack } = (router ?? {}) as { readonly stack?: unknown };
  if (!Array.isArray(stack)) return false;
  return (stack as Layer[]).some(
    (layer) => layer.route === route || (layer.slash === true && knows(layer.handle, route)),
  );
}

interface FastifyRequest {
  readonly raw: IncomingMessage & { [TEMPLATE]?: string };
}

type OnRequest = (request: FastifyRequest, reply: unknown, done: () => void) => void;
type OnError = (request: FastifyRequest, reply: unknown, error: unknown, done: () => void) => void;

interface FastifyRoute {
  /** The path, with the prefixes of the plugins around the route. */
  readonly url: string;
  onRequest?: OnRequest | OnRequest[];
  onError?: OnError | OnError[];
}

interface FastifyInstance {
  addHook(name: 'onRoute', hook: (route: FastifyRoute) => void): void;
}

/** Fastify reports a template when a route is registered. Hooks of the route then store it on each request. */
function createFastifyReader(adapter: AbstractHttpAdapter): RouteTemplateReader {
  adapter.getInstance<FastifyInstance>().addHook('onRoute', (route) => {
    const { url } = route;
    const remember: OnRequest = (request, _reply, done) => {
      request.raw[TEMPLATE] = url;
      done();
    };
    route.onRequest = [remember, ...[route.onRequest ?? []].flat()];
    // Also stored on an error, because the app's global hooks run before the route's and may refuse the request.
    const rememberRefused: OnError = (request, _reply, _error, done) => {
      request.raw[TEMPLATE] = url;
      done();
    };
    route.onError = [rememberRefused, ...[route.onError ?? []].flat()];
  });
  return (request) => (request as FastifyRequest['raw'])[TEMPLATE] ?? UNMATCHED;
}
