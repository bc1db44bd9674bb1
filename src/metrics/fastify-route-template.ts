import type { IncomingMessage } from 'node:http';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { type RouteTemplateReader, UNMATCHED } from './route-template-reader.js';

/** Where the hooks leave the template. */
const TEMPLATE = Symbol('nestjs-cluster.route');

interface FastifyRequest {
  readonly raw: IncomingMessage & { [TEMPLATE]?: string };
}

type OnRequest = (request: FastifyRequest, reply: unknown, done: () => void) => void;
type OnError = (request: FastifyRequest, reply: unknown, error: unknown, done: () => void) => void;

interface FastifyRoute {
  /** With the prefixes of the plugins around it. */
  readonly url: string;
  onRequest?: OnRequest | OnRequest[];
  onError?: OnError | OnError[];
}

interface FastifyInstance {
  addHook(name: 'onRoute', hook: (route: FastifyRoute) => void): void;
}

/** Fastify tells the template when a route is registered; hooks of the route carry it to its requests. */
export function createFastifyReader(adapter: AbstractHttpAdapter): RouteTemplateReader {
  adapter.getInstance<FastifyInstance>().addHook('onRoute', (route) => {
    const { url } = route;
    const remember: OnRequest = (request, _reply, done) => {
      request.raw[TEMPLATE] = url;
      done();
    };
    route.onRequest = [remember, ...[route.onRequest ?? []].flat()];
    // Hooks of the app that are not the route's own run before, and may refuse the request.
    const rememberRefused: OnError = (request, _reply, _error, done) => {
      request.raw[TEMPLATE] = url;
      done();
    };
    route.onError = [rememberRefused, ...[route.onError ?? []].flat()];
  });
  return (request) => (request as FastifyRequest['raw'])[TEMPLATE] ?? UNMATCHED;
}
