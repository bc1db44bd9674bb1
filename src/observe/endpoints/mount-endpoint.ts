import type { AbstractHttpAdapter } from '@nestjs/core';

export interface EndpointResponse {
  readonly status: number;
  readonly contentType: string;
  readonly body: string | Buffer;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** The part of a request that is the same on every adapter. */
export interface EndpointRequest {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

export const TEXT_TYPE = 'text/plain; charset=utf-8';
export const JSON_TYPE = 'application/json; charset=utf-8';

/** Set on the handlers of this package's endpoints. */
export const OWN_ENDPOINT = Symbol('nestjs-cluster.endpoint');

/**
 * Serves `GET path` directly on the HTTP adapter, before the app's routes.
 *
 * The endpoint is not a Nest controller. Otherwise the app's global prefix, versioning, guards,
 * interceptors or throttler could break /health for orchestrators or /metrics for Prometheus.
 */
export function mountEndpoint(
  adapter: AbstractHttpAdapter,
  path: string,
  respond: (request: EndpointRequest) => Promise<EndpointResponse>,
): void {
  const send = (response: unknown, answer: EndpointResponse): void => {
    const { status, contentType, headers = {}, body } = answer;
    adapter.setHeader(response, 'Content-Type', contentType);
    adapter.setHeader(response, 'Cache-Control', 'no-store');
    for (const [name, value] of Object.entries(headers)) adapter.setHeader(response, name, value);
    if (typeof body === 'string' || adapter.getType() === 'fastify') {
      adapter.reply(response, body, status);
    } else {
      // On Express, Nest would send a Buffer as JSON.
      adapter.status(response, status);
      adapter.end(response, body as never);
    }
  };
  const handle = (request: EndpointRequest, response: unknown): void => {
    respond(request).then(
      (answer) => send(response, answer),
      // Hides the error, because it may name files or hosts.
      () => send(response, { status: 500, contentType: TEXT_TYPE, body: 'internal error\n' }),
    );
  };
  adapter.get(path, Object.assign(handle, { [OWN_ENDPOINT]: true }));
}

/**
 * Concurrent calls share one run and its result.
 *
 * @param situation a call starts a new run if this value has changed since the current run began.
 */
export function shareInFlight<T>(
  run: () => Promise<T>,
  situation: () => unknown = () => undefined,
): () => Promise<T> {
  let current: { readonly promise: Promise<T>; readonly situation: unknown } | undefined;
  return () => {
    const now = situation();
    if (current !== undefined && current.situation === now) return current.promise;
    const begun = { promise: run(), situation: now };
    current = begun;
    const end = (): void => {
      if (current === begun) current = undefined;
    };
    begun.promise.then(end, end);
    return begun.promise;
  };
}
