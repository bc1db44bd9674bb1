import type { IncomingMessage } from 'node:http';
import type { AbstractHttpAdapter } from '@nestjs/core';
import {
  ANY,
  fixedTemplate,
  join,
  type Layer,
  type Route,
  type Stack,
  stackOf,
} from './express-layers.js';
import { type Mounts, prefixTemplate, subAppTemplate, templateAlong } from './express-prefix.js';
import { type RouteTemplateReader, UNMATCHED } from './route-template-reader.js';

/** Where a route keeps its template: a WeakMap would double what a request pays. */
const TEMPLATE = Symbol('nestjs-cluster.route');

/** Routers in routers, apps in apps. */
const MAX_DEPTH = 16;

/** Routes that no router of the app shows; there may be a new one for each request. */
const MAX_HIDDEN_ROUTES = 1_000;

/** How a request gets to a route. */
interface Way {
  readonly mounts: Mounts;
  /** The route's own. */
  readonly layer: Layer;
}

interface KnownRoute extends Route {
  /** Its template; else the ways to it, of which each request has come one. */
  [TEMPLATE]?: string | readonly Way[];
}

interface ExpressApp {
  /** What it is mounted in. */
  readonly parent?: ExpressApp;
}

interface ExpressRequest extends IncomingMessage {
  readonly app?: ExpressApp;
  /** The actual path of the router that the request is in; '' once an error has left it. */
  readonly baseUrl?: string;
  readonly originalUrl?: string;
  /** The last that matched. */
  readonly route?: KnownRoute | null;
}

/**
 * Express leaves the matched route on the request, but of the routers around it
 * only the actual path, and not even that after an error. A route is an object
 * that belongs to a router, though, so the routers tell where it is mounted.
 */
export function createExpressReader(adapter: AbstractHttpAdapter): RouteTemplateReader {
  const finder = new TemplateFinder(adapter);
  return (request) => {
    const { route } = request as ExpressRequest;
    if (route === undefined || route === null) return UNMATCHED;
    const known = route[TEMPLATE];
    return typeof known === 'string' ? known : finder.find(request as ExpressRequest, route);
  };
}

/** For the first request of a route, and for each of a route that has no one place. */
class TemplateFinder {
  #hiddenRoutes = 0;

  constructor(private readonly adapter: AbstractHttpAdapter) {}

  find(request: ExpressRequest, route: KnownRoute): string {
    try {
      // What else somebody puts there may be of the client's making.
      if (!Array.isArray(route.stack)) return UNMATCHED;
      const known = route[TEMPLATE] ?? this.#locate(route);
      if (typeof known === 'string') return known;
      const prefix = known.length > 0 ? prefixOf(request, known) : this.#hiddenPrefix(request);
      return join(prefix, route.path);
    } catch {
      // The inner life of routers differs between versions, and paths may not be decodable.
      return ANY;
    }
  }

  get #app(): ExpressApp {
    return this.adapter.getInstance<ExpressApp>();
  }

  get #stack(): Stack {
    return stackOf(this.#app) ?? [];
  }

  /** Notes at every route of the app where it is. */
  #locate(route: KnownRoute): string | readonly Way[] {
    if (this.#hiddenRoutes >= MAX_HIDDEN_ROUTES) return ANY;
    // Stays so where it is not found, and where looking fails: one look a route.
    route[TEMPLATE] = [];
    this.#hiddenRoutes += 1;
    const routes = new Map<KnownRoute, Way[]>();
    collectRoutes(this.#stack, [], routes);
    for (const [each, ways] of routes) each[TEMPLATE] = describe(each, ways);
    if (routes.has(route)) this.#hiddenRoutes -= 1;
    return route[TEMPLATE];
  }

  /** Of a route in a sub-app, or in a router that a function of the app calls. */
  #hiddenPrefix({ app, baseUrl, originalUrl = '' }: ExpressRequest): string {
    const subApps: Stack[] = [];
    for (let each = app; each !== undefined && each !== this.#app; each = each.parent) {
      if (subApps.unshift(stackOf(each) ?? []) === MAX_DEPTH) break;
    }
    if (baseUrl) return prefixTemplate(this.#stack, baseUrl, subApps) ?? `/${ANY}`;
    // In no prefix, or out of it by an error.
    if (subApps.length > 0) return '';
    return subAppTemplate(this.#stack, pathOf(originalUrl)) ?? '';
  }
}

function collectRoutes(stack: Stack, mounts: Mounts, routes: Map<KnownRoute, Way[]>): void {
  for (const layer of stack) {
    const { route, handle } = layer;
    if (route !== undefined) {
      const ways = routes.get(route);
      if (ways === undefined) routes.set(route, [{ mounts, layer }]);
      else ways.push({ mounts, layer });
      continue;
    }
    const below = stackOf(handle);
    if (below === undefined || mounts.length === MAX_DEPTH) continue;
    // A router may be mounted in itself.
    if (mounts.some((mount) => mount.handle === handle)) continue;
    collectRoutes(below, [...mounts, layer], routes);
  }
}

function describe(route: Route, ways: readonly Way[]): string | readonly Way[] {
  if (ways.every(({ mounts }) => isNotFoundOfNest(route, mounts))) return UNMATCHED;
  const [template, ...others] = new Set(
    ways.map(({ mounts }) => {
      const parts = mounts.map(fixedTemplate);
      return parts.includes(undefined) ? undefined : join(parts.join(''), route.path);
    }),
  );
  return template !== undefined && others.length === 0 ? template : ways;
}

/** Nest 12 answers 404 under a global prefix from a router with this one route. */
function isNotFoundOfNest(route: Route, mounts: Mounts): boolean {
  const around = stackOf(mounts.at(-1)?.handle ?? {});
  return around?.length === 1 && route.path === '*path' && route.methods?._all === true;
}

/** The template of the prefix by which the request has come. */
function prefixOf({ baseUrl, originalUrl = '' }: ExpressRequest, ways: readonly Way[]): string {
  for (const { mounts } of baseUrl ? ways : []) {
    const template = templateAlong(mounts, baseUrl!);
    if (template !== undefined) return template;
  }
  const path = pathOf(originalUrl);
  for (const { mounts, layer } of ways) {
    const template = templateAlong(mounts, path, layer);
    if (template !== undefined) return template;
  }
  return `/${ANY}`;
}

/** Of a request target, which may name scheme and host. */
function pathOf(url: string): string {
  return url.replace(/^[a-z][\w+.-]*:\/\/[^/?]*/i, '').replace(/\?.*$/s, '');
}
