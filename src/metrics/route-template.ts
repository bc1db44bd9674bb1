import type { IncomingMessage } from 'node:http';
import type { AbstractHttpAdapter } from '@nestjs/core';

/** Label of requests that no route matched: their paths are the client's, and endless. */
export const UNMATCHED = 'unmatched';

/** Finds the template (`/cats/:id`) of the route that answered a request. */
export type RouteTemplateReader = (request: IncomingMessage) => string;

/** Where Fastify's hook leaves the template. */
const TEMPLATE = Symbol('nestjs-cluster.route');

interface ExpressRequest extends IncomingMessage {
  readonly baseUrl?: string;
  readonly route?: { readonly path: unknown };
}

interface FastifyRequest {
  readonly raw: IncomingMessage & { [TEMPLATE]?: string };
}

type FastifyHook = (request: FastifyRequest, reply: unknown, done: () => void) => void;

interface FastifyRoute {
  readonly url: string;
  onRequest?: FastifyHook | FastifyHook[];
}

interface FastifyInstance {
  addHook(name: 'onRoute', hook: (route: FastifyRoute) => void): void;
}

/**
 * A reader for the app's adapter. Must be called before the app registers its
 * routes, since Fastify tells the template at registration.
 */
export function createRouteTemplateReader(adapter: AbstractHttpAdapter): RouteTemplateReader {
  if (adapter.getType() !== 'fastify') return readExpressTemplate;
  const instance = adapter.getInstance<FastifyInstance>();
  instance.addHook('onRoute', (route) => {
    const { url } = route;
    const remember: FastifyHook = (request, _reply, done) => {
      request.raw[TEMPLATE] = url;
      done();
    };
    route.onRequest = [remember, ...[route.onRequest ?? []].flat()];
  });
  return (request) => (request as FastifyRequest['raw'])[TEMPLATE] ?? UNMATCHED;
}

/** Express leaves the matched route on the request. */
function readExpressTemplate(request: IncomingMessage): string {
  const { route, baseUrl } = request as ExpressRequest;
  if (route === undefined) return UNMATCHED;
  const path = typeof route.path === 'string' ? route.path : String(route.path);
  return baseUrl ? baseUrl + path : path;
}
