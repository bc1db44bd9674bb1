import type { IncomingMessage } from 'node:http';

/** Label of requests that no route of Nest matched. Clients choose these paths, so their number has no limit. */
export const UNMATCHED = 'unmatched';

/** A property of a request that holds its label. A WeakMap would double the cost of a request. */
const TEMPLATE = Symbol('nestjs-cluster.route');

type LabelledRequest = IncomingMessage & { [TEMPLATE]?: string };

export type Handler = (
  request: LabelledRequest & { raw?: LabelledRequest },
  ...rest: unknown[]
) => unknown;

/**
 * Makes the handler of a route set the route's template (`/cats/:id`) on each request first. It is a
 * text of the app, never of a client. Guards, pipes and interceptors of Nest run in the handler.
 */
export function labelled(handler: Handler, path: unknown): Handler {
  const template = String(path);
  const noting: Handler = (request, ...rest) => {
    (request.raw ?? request)[TEMPLATE] = template; // `raw`: Fastify has its own request object
    return handler(request, ...rest);
  };
  // An adapter looks at what is set on the handler, or by decorators: version, configuration, schema.
  return Object.setPrototypeOf(noting, handler) as Handler;
}

/** The template of the route that answered a request. Runs for every request. */
export function templateOf(request: LabelledRequest): string {
  return request[TEMPLATE] ?? UNMATCHED;
}
