import type { AbstractHttpAdapter } from '@nestjs/core';

/** What an endpoint answers. */
export interface EndpointResponse {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/**
 * Serves `GET path` on the HTTP adapter itself, before the app's own routes.
 *
 * Not a Nest controller, so that nothing of the app changes it: a global
 * prefix, a version, a guard, an interceptor that wraps responses or a
 * throttler would each take /health from the orchestrator or /metrics from
 * Prometheus.
 */
export function mountEndpoint(
  adapter: AbstractHttpAdapter,
  path: string,
  respond: () => Promise<EndpointResponse>,
): void {
  const send = (response: unknown, { status, contentType, body }: EndpointResponse): void => {
    adapter.setHeader(response, 'Content-Type', contentType);
    adapter.setHeader(response, 'Cache-Control', 'no-store');
    adapter.reply(response, body, status);
  };
  adapter.get(path, (_request: unknown, response: unknown) => {
    respond().then(
      (answer) => send(response, answer),
      // What went wrong may name files or hosts: it goes to the log of whoever threw it, not out.
      () =>
        send(response, {
          status: 500,
          contentType: 'text/plain; charset=utf-8',
          body: 'internal error\n',
        }),
    );
  });
}
