import { Inject, Injectable } from '@nestjs/common';
import { type AbstractHttpAdapter, DiscoveryService } from '@nestjs/core';
import { ClusterConfigurationError } from '../../contract/errors/index.js';
import { MODULE_OPTIONS, type ResolvedModuleOptions } from '../../contract/options/module.js';
import { handlersOf } from './controller-routes.js';
import { OWN_ENDPOINT } from './mount-endpoint.js';

/** The methods of an adapter that register a route for GET requests. */
const METHODS = ['get', 'all'] as const;

type Register = (...args: unknown[]) => unknown;

/**
 * Refuses routes of the app with the same path as an endpoint of this package, because only the
 * handler that is registered first would ever answer. Routes are checked at the HTTP adapter, where
 * their paths include prefixes and versions.
 */
@Injectable()
export class ShadowedRoutes {
  readonly #ours = new Set<string>();
  readonly #theirs = new Set<string>();
  readonly #shadowed = new Set<string>();
  #adapter: AbstractHttpAdapter | undefined;
  #unfollow: (() => void)[] = [];

  constructor(
    @Inject(MODULE_OPTIONS) private readonly options: ResolvedModuleOptions,
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
  ) {}

  /** Checks all routes that are registered from now on. A second call changes nothing. */
  follow(adapter: AbstractHttpAdapter): void {
    if (this.#adapter !== undefined) return;
    this.#adapter = adapter;
    const methods = adapter as unknown as Record<(typeof METHODS)[number], Register>;
    this.#unfollow = METHODS.map((method) => {
      const register = methods[method];
      const follow: Register = (...args) => {
        if (!this.#isShadowed(args)) return register.apply(adapter, args);
        return undefined; // Fastify would throw, and name only the first such route
      };
      methods[method] = follow;
      return () => {
        if (methods[method] === follow) methods[method] = register;
      };
    });
  }

  /**
   * Must be called once all routes are registered.
   *
   * @throws ClusterConfigurationError that names all routes with a path of our endpoints.
   */
  refuse(): void {
    for (const unfollow of this.#unfollow.splice(0)) unfollow();
    if (this.#shadowed.size === 0) return;
    const routes = [...this.#shadowed].map((path) => this.#refusalOf(path));
    throw new ClusterConfigurationError(
      `routes of the app have paths that ClusterModule serves: ${routes.join(' | ')}`,
    );
  }

  #isShadowed([paths, ...handlers]: unknown[]): boolean {
    const handler = handlers.at(-1);
    if (typeof handler !== 'function') return false;
    const isOurs = OWN_ENDPOINT in handler;
    const [mine, others] = isOurs ? [this.#ours, this.#theirs] : [this.#theirs, this.#ours];
    // Fastify chooses a handler by version. Express calls one handler after the other.
    const isVersioned = typeof (handler as { version?: unknown }).version === 'string';
    if (isVersioned && this.#adapter!.getType() === 'fastify') return false;
    let shadowed = false;
    for (const each of [paths].flat()) {
      if (typeof each !== 'string') continue;
      const path = this.#normalize(each);
      mine.add(path);
      if (!others.has(path)) continue;
      this.#shadowed.add(path);
      shadowed = true;
    }
    return shadowed;
  }

  /** Normalizes a path in the way that the adapter compares paths by default. */
  #normalize(path: string): string {
    const bare = `/${path}`.replace(/^\/+/, '/').replace(/(?<=.)\/+$/, '');
    return this.#adapter!.getType() === 'express' ? bare.toLowerCase() : bare;
  }

  #refusalOf(path: string): string {
    const { metrics } = this.options;
    const isMetrics = metrics !== false && this.#normalize(metrics.path) === path;
    const option = isMetrics ? 'metrics' : 'health';
    return (
      `${path} is a route of ${this.#ownerOf(path) ?? "the app's HTTP adapter"}, and of the option ${option}; ` +
      `give one of them another path (${option}.path of forRoot()), or leave ours out (${option}: false)`
    );
  }

  /** The name of the handler with this path. Its own path has no prefixes and no version. */
  #ownerOf(path: string): string | undefined {
    const routes = [...handlersOf(this.discovery)].flatMap(([name, paths]) =>
      paths.map((route) => ({ name: `${name}()`, path: this.#normalize(route) })),
    );
    return routes
      .filter((route) => path.endsWith(route.path))
      .toSorted((a, b) => b.path.length - a.path.length)[0]?.name;
  }
}
