import type { IncomingMessage } from 'node:http';

/** The route label of requests that match no Nest route. Clients could send any number of such paths. */
export const UNMATCHED = 'unmatched';

/** The request's property for its label. A WeakMap would double the cost of a request. */
const TEMPLATE = Symbol('nestjs-cluster.route');

type LabelledRequest = IncomingMessage & { [TEMPLATE]?: string };

export type Handler = (
  request: LabelledRequest & { raw?: LabelledRequest },
  ...rest: unknown[]
) => unknown;

/**
 * Wraps a route's handler so that it first sets the route's template (`/cats/:id`) on the request. The
 * number of templates is limited, because they come from the app. Guards, pipes and interceptors run
 * inside the handler.
 */
export function labelled(handler: Handler, path: unknown): Handler {
  const template = String(path);
  const labelling: Handler = (request, ...rest) => {
    (request.raw ?? request)[TEMPLATE] = template; // Fastify keeps Node's request in `raw`
    return handler(request, ...rest);
  };
  // Adapters read properties and metadata of the handler: version, configuration, schema.
  return Object.setPrototypeOf(labelling, handler) as Handler;
}

/** The template of the route that answered a request. Must be cheap. */
export function templateOf(request: LabelledRequest): string {
  return request[TEMPLATE] ?? UNMATCHED;
}
