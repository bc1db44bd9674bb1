import { Inject, Injectable, RequestMethod } from '@nestjs/common';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { ClusterConfigurationError } from '../../contract/errors/errors.js';
import { MODULE_OPTIONS, type ResolvedModuleOptions } from '../../contract/options/module.js';
import { type Handler, labelled } from '../../worker/serve/route-template.js';
import { OWN_ENDPOINT } from './mount-endpoint.js';

/** Nest registers routes with these adapter methods: `get`, `all`, `propfind` and so on. */
const METHODS = Object.values(RequestMethod)
  .filter((method) => typeof method === 'string')
  .map((method) => method.toLowerCase());

/** Only routes with these methods can conflict with this package's endpoints. */
const OF_ENDPOINTS: ReadonlySet<string> = new Set(['get', 'all']);

type Register = (...args: unknown[]) => unknown;

/**
 * Records the routes that Nest registers with the HTTP adapter. Their paths include all prefixes and
 * versions.
 */
@Injectable()
export class Routes {
  readonly #ownPaths = new Set<string>();
  readonly #appPaths = new Set<string>();
  /** Paths that both the app and this package use. Only the handler registered first would be called. */
  readonly #shadowed = new Set<string>();
  #adapter: AbstractHttpAdapter | undefined;

  constructor(@Inject(MODULE_OPTIONS) private readonly options: ResolvedModuleOptions) {}

  /** Records all routes that are registered after this call. */
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
        // Fastify would throw an error that names only the first conflict.
        if (OF_ENDPOINTS.has(method) && this.#isShadowed(path, handler)) return undefined;
        return register.apply(adapter, [...args.slice(0, -1), labelled(handler as Handler, path)]);
      };
    }
  }

  /**
   * Must be called after all routes have been registered.
   *
   * @throws ClusterConfigurationError that names all conflicting routes.
   */
  refuseShadowed(): void {
    if (this.#shadowed.size === 0) return;
    const routes = [...this.#shadowed].map((path) => {
      const { metrics } = this.options;
      const isMetrics = metrics !== false && this.#normalize(metrics.path) === path;
      const option = isMetrics ? 'metrics' : 'health';
      return `${path} is both an app route and a path of the ${option} option; change the route or ${option}.path in forRoot(), or set ${option}: false`;
    });
    throw new ClusterConfigurationError(
      `routes of the app conflict with endpoints of ClusterModule: ${routes.join(' | ')}`,
    );
  }

  #isShadowed(paths: unknown, handler: object): boolean {
    const isOurs = OWN_ENDPOINT in handler;
    const [same, others] = isOurs
      ? [this.#ownPaths, this.#appPaths]
      : [this.#appPaths, this.#ownPaths];
    // Fastify selects a handler by version. Express calls the first handler, whatever its version.
    const isVersioned = typeof (handler as { version?: unknown }).version === 'string';
    if (isVersioned && this.#adapter!.getType() === 'fastify') return false;
    const own = [paths].flat().filter((path) => typeof path === 'string');
    const taken = own.map((path) => this.#normalize(path)).filter((path) => others.has(path));
    for (const path of own) same.add(this.#normalize(path));
    for (const path of taken) this.#shadowed.add(path);
    return taken.length > 0;
  }

  /** Normalizes a path as the adapter does by default when it compares paths. */
  #normalize(path: string): string {
    const bare = `/${path}`.replace(/^\/+/, '/').replace(/(?<=.)\/+$/, '');
    return this.#adapter!.getType() === 'express' ? bare.toLowerCase() : bare;
  }
}
