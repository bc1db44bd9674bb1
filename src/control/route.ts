import type { Readable } from 'node:stream';

/** A request that has passed the guards. */
export interface Call {
  /** The slot of a path with `:slot`. The cluster may not have such a slot. */
  readonly slot: number;
  readonly query: URLSearchParams;
  /** The request's body, parsed as JSON; `undefined` if the request has no body. */
  readonly body: unknown;
  /** Aborted when the client is gone. */
  readonly gone: AbortSignal;
}

/** JSON, or a stream of any length that is read as fast as the client reads. */
export type Answer =
  | { readonly status: number; readonly json: object }
  | { readonly status: number; readonly contentType: string; readonly stream: Readable };

export type Handler = (call: Call) => Promise<Answer> | Answer;

/** The handlers by method and path. A path may hold `:slot`, which is a whole number. */
export type Routes = Readonly<Record<`${'GET' | 'POST'} /v1/${string}`, Handler>>;

/** The reason why a request is refused. */
export class Refusal extends Error {
  /** @param code is for programs, and `message` is for people. */
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

export function tooMany(what: string): Refusal {
  return new Refusal(429, 'TOO_MANY', `${what}; ask again later`);
}

export function ok(json: object): Answer {
  return { status: 200, json };
}

/** @throws Refusal if no route matches. */
export function findRoute(
  routes: Routes,
  method: string,
  path: string,
): { readonly handler: Handler; readonly slot: number } {
  const [, slot, action] = /^\/v1\/workers\/(\d{1,4})(\/.*)$/.exec(path) ?? [];
  const pattern = slot === undefined ? path : `/v1/workers/:slot${action}`;
  const handler = (each: string) =>
    Object.hasOwn(routes, `${each} ${pattern}`) ? routes[`${each} ${pattern}` as never] : undefined;
  const found = handler(method);
  if (found !== undefined) return { handler: found, slot: Number(slot) };
  const other = ['GET', 'POST'].find((each) => handler(each) !== undefined);
  if (other !== undefined) {
    throw new Refusal(405, 'METHOD_NOT_ALLOWED', `this path takes ${other} only`);
  }
  throw new Refusal(404, 'NOT_FOUND', `not found; here are ${Object.keys(routes).join(', ')}`);
}
