import { createHash } from 'node:crypto';
import type { Fingerprint } from '../../contract/ipc/index.js';
import { PRIORITY, type RequestPriority } from '../../contract/options/choices.js';
import { describeRequest, type RequestLine } from './describe-request.js';

/** The methods of an HTTP adapter by which Nest registers routes. */
const REGISTRARS = [
  'get',
  'post',
  'put',
  'patch',
  'delete',
  'head',
  'options',
  'search',
  'all',
] as const;

type Register = (...args: unknown[]) => unknown;

interface Route {
  /** The HTTP method. `undefined` means any method. */
  readonly method: string | undefined;
  readonly template: string;
  readonly segments: readonly string[];
  readonly wildcards: number;
  /** `undefined` = normal. */
  readonly priority: RequestPriority | undefined;
}

/** The routes that Nest registers at the app's HTTP adapter, with their prefixes and versions. */
export class AppRoutes {
  readonly #routes: Route[] = [];
  #hasPriorities = false;

  /** Records the routes that are registered at `adapter` from now on. */
  follow(adapter: unknown): void {
    const methods = (adapter ?? {}) as Record<string, Register | undefined>;
    for (const name of REGISTRARS) {
      const register = methods[name];
      if (register === undefined) continue;
      methods[name] = (...args) => {
        // A call with one argument, the handler, registers middleware.
        if (args.length > 1)
          for (const path of [args[0]].flat()) this.add(name, path, priorityOf(args.at(-1)));
        return register.apply(adapter, args);
      };
    }
  }

  add(name: string, path: unknown, priority?: RequestPriority): void {
    if (typeof path !== 'string') return;
    const segments = segmentsOf(path);
    const method = name === 'all' ? undefined : name.toUpperCase();
    const wildcards = segments.filter(isWildcard).length;
    this.#routes.push({
      method,
      template: `/${segments.join('/')}`,
      segments,
      wildcards,
      priority,
    });
    this.#hasPriorities ||= priority !== undefined;
    this.#routes.sort((a, b) => a.wildcards - b.wildcards);
  }

  /** The template of the route that matches the path, or `null` if no route does. */
  find(method: string, path: string): string | null {
    return this.#find(method, path)?.template ?? null;
  }

  /** The priority of the route that matches the path. A HEAD request has the priority of its GET route. */
  priority(method: string, path: string): RequestPriority {
    if (!this.#hasPriorities) return 'normal';
    return this.#find(method === 'HEAD' ? 'GET' : method, path)?.priority ?? 'normal';
  }

  #find(method: string, path: string): Route | undefined {
    const asked = segmentsOf(path);
    return this.#routes.find(
      (route) => (route.method ?? method) === method && matches(route.segments, asked),
    );
  }

  /** Identifies a request. The same request has the same fingerprint in every worker. */
  fingerprint(request: RequestLine): Fingerprint {
    const { method, path } = describeRequest(request, 0);
    const { originalUrl, url = '' } = request;
    const hash = createHash('sha1').update(originalUrl ?? url);
    const route = this.find(method, path);
    return { method, route, url: hash.digest('base64url').slice(0, 16), path };
  }
}

/** The priority that `@Priority()` has set. Nest copies the metadata of a method to the handler that it registers. */
function priorityOf(handler: unknown): RequestPriority | undefined {
  if (typeof handler !== 'function') return undefined;
  // Missing if nothing has loaded reflect-metadata.
  const { getMetadata } = Reflect as { getMetadata?: (key: unknown, target: object) => unknown };
  return getMetadata?.(PRIORITY, handler) as RequestPriority | undefined;
}

function segmentsOf(path: string): string[] {
  return path.split('/').filter((segment) => segment !== '');
}

/** Whether a segment is a parameter or a wildcard, in the syntax of Express or Fastify. */
function isWildcard(segment: string): boolean {
  return /[:*({]/.test(segment);
}

function matches(route: readonly string[], asked: readonly string[]): boolean {
  for (const [index, segment] of route.entries()) {
    if (segment.startsWith('*') || segment.startsWith('{*')) return true;
    const own = asked[index];
    if (own === undefined) return segment.startsWith('{') || segment.endsWith('?');
    if (!isWildcard(segment) && segment.toLowerCase() !== own.toLowerCase()) return false;
  }
  return asked.length === route.length;
}
