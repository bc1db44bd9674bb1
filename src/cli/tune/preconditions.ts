import net from 'node:net';
import { AddressUnavailableError, NotMeasuredError } from '../../errors/index.js';
import { reasonOf } from './cluster-endpoints.js';
import type { Plan } from './plan.js';

/** The slowest answer that is waited for before the load. */
const ROUTE_TIMEOUT_MS = 30_000;

/** @throws AddressUnavailableError where another process would be measured. */
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
  throw new AddressUnavailableError(host, {
    message:
      'something listens there before the app is started. Stop it, or start the app on another port and give it in --url',
  });
}

/** A load of errors measures nothing. @throws NotMeasuredError where the route does not answer with 2xx or 3xx. */
export async function refuseFailingRoute(
  { url, headers }: Pick<Plan, 'url' | 'headers'>,
  over: AbortSignal,
): Promise<void> {
  let status: number;
  try {
    const response = await fetch(url, {
      headers: { ...headers, connection: 'close' },
      redirect: 'manual',
      signal: AbortSignal.any([over, AbortSignal.timeout(ROUTE_TIMEOUT_MS)]),
    });
    status = response.status;
    await response.body?.cancel();
  } catch (error) {
    over.throwIfAborted();
    throw new NotMeasuredError(`GET ${url} failed: ${reasonOf(error)}. Give a route that answers`);
  }
  if (status >= 200 && status <= 399) return;
  throw new NotMeasuredError(
    `GET ${url} answers ${status}: give a route that answers 2xx or 3xx (--header adds what it asks for)`,
  );
}
