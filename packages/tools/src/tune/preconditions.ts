import net from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { ClusterAddressError, NotMeasuredError } from '../../contract/errors/index.js';
import { reasonOf } from '../app/endpoints.js';
import type { Plan } from './run/measurement.js';

const MS_PER_SECOND = 1_000;

/** How long the route may take to answer with success before the load begins. */
const ROUTE_TIMEOUT_MS = 30_000;

/** @throws ClusterAddressError if another process listens there, because that process would be measured. */
export async function refuseTakenAddress(url: string, interrupted: AbortSignal): Promise<void> {
  const { hostname, port, protocol, host } = new URL(url);
  const socket = net.connect({
    host: hostname.replace(/^\[|\]$/g, ''),
    port: Number(port || (protocol === 'https:' ? 443 : 80)),
    signal: interrupted,
  });
  const taken = await new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
  });
  socket.destroy();
  interrupted.throwIfAborted();
  if (!taken) return;
  throw new ClusterAddressError(host, {
    message:
      'something listens there before the app is started. Stop it, or start the app on another port and give it in --url',
  });
}

/**
 * Requests the route once before the load, because a measurement of error responses is useless.
 * After a 503 with `Retry-After` it tries again: on a busy machine threads take seconds to start.
 *
 * @throws NotMeasuredError if the route does not answer with 2xx or 3xx within 30 s.
 */
export async function refuseFailingRoute(
  { url, headers }: Pick<Plan, 'url' | 'headers'>,
  over: AbortSignal,
): Promise<void> {
  const deadline = performance.now() + ROUTE_TIMEOUT_MS;
  for (;;) {
    const { status, retryAfterMs } = await answerOf(url, headers, over);
    if (status >= 200 && status <= 399) return;
    if (retryAfterMs === undefined || performance.now() + retryAfterMs > deadline) {
      throw new NotMeasuredError(
        `GET ${url} answers ${status}: give a route that answers 2xx or 3xx (--header adds what it asks for)`,
      );
    }
    await delay(retryAfterMs, undefined, { signal: over });
  }
}

/** The status of one request. `retryAfterMs` is `undefined` if another request would not help. */
async function answerOf(
  url: string,
  headers: Readonly<Record<string, string>>,
  over: AbortSignal,
): Promise<{ status: number; retryAfterMs: number | undefined }> {
  try {
    const response = await fetch(url, {
      headers: { ...headers, connection: 'close' },
      redirect: 'manual',
      signal: AbortSignal.any([over, AbortSignal.timeout(ROUTE_TIMEOUT_MS)]),
    });
    await response.body?.cancel();
    const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
    return {
      status: response.status,
      retryAfterMs: response.status === 503 && seconds >= 0 ? seconds * MS_PER_SECOND : undefined,
    };
  } catch (error) {
    over.throwIfAborted();
    throw new NotMeasuredError(`GET ${url} failed: ${reasonOf(error)}. Give a route that answers`);
  }
}
