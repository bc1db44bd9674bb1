import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AbstractHttpAdapter } from '@nestjs/core';

/** An entry of an Express router: each `use()` and each route has one (router 2.x, `lib/layer.js`). */
interface Layer {
  readonly route?: unknown;
  readonly matchers: readonly ((path: string) => unknown)[];
  readonly handle: Handle;
  match: (this: Layer, path: string) => unknown;
}

type Handle = (request: ExpressRequest, response: ServerResponse, next: () => void) => void;

interface ExpressRequest extends IncomingMessage {
  readonly path: string;
  /** The router sets this to the matching route. */
  route?: unknown;
}

interface ExpressApp {
  readonly router?: { readonly stack: Layer[] };
  use(handle: Handle): void;
}

/**
 * Combines all endpoints that `mount` registers into one layer of the Express router.
 *
 * A router matches each of its layers with a regular expression until one of them answers, so each
 * endpoint would slow all other requests. The combined layer has the place of the endpoints, behind
 * earlier middleware of the app. It costs other requests only one comparison of their path. With
 * another adapter, or if Express is not as expected, the endpoints stay as they are.
 *
 * @param mount returns the paths that it has registered.
 */
export function mountInOneLayer(adapter: AbstractHttpAdapter, mount: () => string[]): string[] {
  if (adapter.getType() !== 'express') return mount();
  const app = adapter.getInstance<ExpressApp>();
  const before = app.router?.stack.length;
  const paths = mount();
  const stack = app.router?.stack;
  if (before === undefined || stack === undefined) return paths;
  const added = stack.slice(before);
  // An endpoint is not registered if a route of the app has the same path. In that case the start
  // is refused later.
  if (added.length === 0 || !added.every(isRoute)) return paths;
  stack.length = before;
  app.use(dispatchTo(added));
  const layer = stack.at(-1)!;
  const { match } = layer;
  const isOurs = comparison(paths);
  layer.match = (path) => isOurs(path) && match.call(layer, path);
  return paths;
}

function isRoute({ route, matchers, match }: Layer): boolean {
  return route !== undefined && Array.isArray(matchers) && typeof match === 'function';
}

/** Runs the layers as the router does. The property `stack` shows the layers to tools that list the routes. */
function dispatchTo(stack: readonly Layer[]): Handle {
  const dispatch: Handle = (request, response, next) => {
    const { method, path } = request;
    const layer = stack.find(({ matchers }) => matchers.some((matcher) => matcher(path)));
    if (layer === undefined || (method !== 'GET' && method !== 'HEAD')) return next();
    request.route = layer.route;
    layer.handle(request, response, next);
  };
  return Object.assign(dispatch, { stack });
}

/** Returns a function that compares a path with `paths` as Express does by default. It runs for every request. */
function comparison(paths: readonly string[]): (path: string) => boolean {
  const byLength: string[][] = [];
  for (const path of paths.flatMap((each) => [each.toLowerCase(), `${each.toLowerCase()}/`])) {
    (byLength[path.length] ??= []).push(path);
  }
  return (path) => byLength[path.length]?.includes(path.toLowerCase()) === true;
}
