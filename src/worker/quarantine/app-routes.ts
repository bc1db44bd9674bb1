import { createHash } from 'node:crypto';
import { unescape } from 'node:querystring';
import { type Fingerprint, NO_ROUTE } from '../../contract/ipc/index.js';
import { describeRequest, targetOf, type RequestLine } from './describe-request.js';

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
}

/** The routes that Nest registers at the app's HTTP adapter, with their prefixes and versions. */
export class AppRoutes {
  readonly #routes: Route[] = [];

  /** Records the routes that are registered at `adapter` from now on. */
  follow(adapter: unknown): void {
    const methods = (adapter ?? {}) as Record<string, Register | undefined>;
    for (const name of REGISTRARS) {
      const register = methods[name];
      if (register === undefined) continue;
      methods[name] = (...args) => {
        // A call with one argument, the handler, registers middleware.
        if (args.length > 1) for (const path of [args[0]].flat()) this.add(name, path);
        return register.apply(adapter, args);
      };
    }
  }

  add(name: string, path: unknown): void {
    if (typeof path !== 'string') return;
    const segments = segmentsOf(path);
    const method = name === 'all' ? undefined : name.toUpperCase();
    const wildcards = segments.filter(isWildcard).length;
    this.#routes.push({
      method,
      template: `/${segments.join('/')}`,
      segments,
      wildcards,
    });
    this.#routes.sort((a, b) => a.wildcards - b.wildcards);
  }

  /** The route that handles a request. A GET route also handles HEAD. */
  #find(method: string, asked: readonly string[]): Route | undefined {
    return this.#routes.find(
      ({ method: own = method, segments }) =>
        (own === method || (own === 'GET' && method === 'HEAD')) && matches(segments, asked),
    );
  }

  /**
   * Identifies a request. The same request has the same fingerprint in every worker.
   */
  fingerprint(request: RequestLine): Fingerprint {
    const { method, path } = describeRequest(request);
    const target = targetOf(request);
    const asked = segmentsOf(target.path);
    const found = this.#find(method, asked);
    return {
      // If HEAD has no route of its own, the handler of GET answers it.
      method: method === 'HEAD' && found?.method !== 'HEAD' ? 'GET' : method,
      route: found?.template ?? NO_ROUTE,
      // Express ignores the case of a path, and the slash at its end.
      url: hashOf(found ? target.url : JSON.stringify(asked).toLowerCase()),
      path,
    };
  }
}

function hashOf(text: string): string {
  return createHash('sha1').update(text).digest('base64url').slice(0, 16);
}

/** The segments of a path, decoded. */
function segmentsOf(path: string): string[] {
  const segments = path.split('/').filter((segment) => segment !== '');
  // Does not throw if an encoding is malformed.
  return path.includes('%') ? segments.map((segment) => unescape(segment)) : segments;
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
