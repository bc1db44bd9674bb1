import { Inject, Injectable, RequestMethod } from '@nestjs/common';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { ClusterConfigurationError } from '../../contract/errors/errors.js';
import { MODULE_OPTIONS, type ResolvedModuleOptions } from '../../contract/options/module.js';
import { type Handler, labelled } from '../../worker/serve/route-template.js';
import { OWN_ENDPOINT } from './mount-endpoint.js';

/** The methods of an adapter by which Nest registers a route: `get`, `all`, `propfind` and so on. */
const METHODS = Object.values(RequestMethod)
  .filter((method) => typeof method === 'string')
  .map((method) => method.toLowerCase());

/** The methods whose routes can shadow an endpoint of this package. */
const OF_ENDPOINTS: ReadonlySet<string> = new Set(['get', 'all']);

type Register = (...args: unknown[]) => unknown;

/**
 * Follows the routes that Nest registers with the HTTP adapter, whichever adapter it is. A path there
 * includes every prefix and version.
 */
@Injectable()
export class Routes {
  readonly #ownPaths = new Set<string>();
  readonly #appPaths = new Set<string>();
  /** Paths that the app and this package both serve. Only the handler registered first would ever answer. */
  readonly #shadowed = new Set<string>();
  #adapter: AbstractHttpAdapter | undefined;

  constructor(@Inject(MODULE_OPTIONS) private readonly options: ResolvedModuleOptions) {}

  /** Follows all routes that are registered from now on. A second call changes nothing. */
  follow(adapter: AbstractHttpAdapter): void {
    if (this.#adapter === adapter) return;
    this.#adapter = adapter;
    const methods = adapter as unknown as Record<string, Register | undefined>;
    for (const method of METHODS) {
      const register = methods[method];
      if (register === undefined) continue;
      methods[method] = (...args) => {
        const handler = args.at(-1);
        if (typeof handler !== 'function' || args.length < 2) return register.apply(adapter, args);
        const [path] = args;
        // Fastify would throw at such a route, and name only the first one.
        if (OF_ENDPOINTS.has(method) && this.#isShadowed(path, handler)) return undefined;
        return register.apply(adapter, [...args.slice(0, -1), labelled(handler as Handler, path)]);
      };
    }
  }

  /**
   * Must be called once all routes are registered.
   *
   * @throws ClusterConfigurationError that names all routes with a path of our endpoints.
   */
  refuseShadowed(): void {
    if (this.#shadowed.size === 0) return;
    const routes = [...this.#shadowed].map((path) => {
      const { metrics } = this.options;
      const isMetrics = metrics !== false && this.#normalize(metrics.path) === path;
      const option = isMetrics ? 'metrics' : 'health';
      return `${path} is a route of the app, and of the option ${option}; change one of them (${option}.path of forRoot()), or set ${option}: false`;
    });
    throw new ClusterConfigurationError(
      `routes of the app have paths that ClusterModule serves: ${routes.join(' | ')}`,
    );
  }

  #isShadowed(paths: unknown, handler: object): boolean {
    const isOurs = OWN_ENDPOINT in handler;
    const [same, others] = isOurs
      ? [this.#ownPaths, this.#appPaths]
      : [this.#appPaths, this.#ownPaths];
    // Fastify chooses a handler by version. Express calls one handler after the other.
    const isVersioned = typeof (handler as { version?: unknown }).version === 'string';
    if (isVersioned && this.#adapter!.getType() === 'fastify') return false;
    const own = [paths].flat().filter((path) => typeof path === 'string');
    const taken = own.map((path) => this.#normalize(path)).filter((path) => others.has(path));
    for (const path of own) same.add(this.#normalize(path));
    for (const path of taken) this.#shadowed.add(path);
    return taken.length > 0;
  }

  /** Normalizes a path in the way that the adapter compares paths by default. */
  #normalize(path: string): string {
    const bare = `/${path}`.replace(/^\/+/, '/').replace(/(?<=.)\/+$/, '');
    return this.#adapter!.getType() === 'express' ? bare.toLowerCase() : bare;
  }
}
