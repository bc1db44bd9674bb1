import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import {
  type BlockedRequest,
  type Fingerprint,
  MAX_SUSPECTS,
  type PrimaryMessage,
} from '../../contract/ipc/index.js';
import { NotedRequests } from '../watchdog/noted-requests.js';
import { isOpenEventStream } from '../http/event-stream.js';
import type { LocalLink } from '../link/local-link.js';
import type { PrimaryChannel } from '../link/primary-channel.js';
import { AppRoutes } from './app-routes.js';
import { describeRequests, type RequestLine } from './describe-request.js';
import { type Flight, Flights } from './flights.js';
import { RequestGuard } from './request-guard.js';

/** The requests that may have ended this process. */
export interface Suspects {
  /** It is known: none, or the one whose asynchronous context the error has. */
  readonly certain: boolean;
  readonly suspects: readonly Fingerprint[];
}

/** A worker's part in finding requests that end workers, and in keeping them from the app. */
export class RequestWatch {
  readonly routes = new AppRoutes();
  readonly #guard: RequestGuard;
  #flights: Flights | undefined;

  constructor(
    private readonly local: Pick<LocalLink, 'tracker' | 'endpoints'>,
    private readonly channel: Pick<PrimaryChannel, 'send'>,
  ) {
    this.#guard = new RequestGuard(
      (request) => this.#fingerprint(request),
      (id, lived) => void channel.send({ type: 'trial', id, lived }),
      () => this.#flights?.give(),
    );
    // In the context of the call that ends the process.
    process.once('exit', () => this.tellSuspects('exit'));
  }

  follow(server: Server): void {
    this.#guard.follow(server);
  }

  /** Takes the requests that the primary wants watched, or kept from the app. */
  hear({ watch, entries }: PrimaryMessage & { type: 'quarantine' }): void {
    this.#guard.set(entries, watch);
    if (watch === (this.#flights !== undefined)) return;
    this.#flights?.stop();
    this.#flights = watch
      ? new Flights(
          (n, began, ended) => void this.channel.send({ type: 'flight', n, began, ended }),
        )
      : undefined;
    this.local.tracker.scopes.watch = watch ? this : undefined;
  }

  /** @returns `undefined` for a request that is never watched. */
  begin(request: IncomingMessage, response: ServerResponse): Flight | undefined {
    const own = this.#fingerprint(request);
    const flight = own && this.#flights?.begin(own, response);
    // The guard does not hold a request of HTTP/2.
    if (flight !== undefined && request.httpVersionMajor > 1) this.#flights?.give(flight);
    return flight;
  }

  enter(flight: Flight): void {
    this.#flights?.enter(flight);
  }

  get requests(): readonly BlockedRequest[] {
    return describeRequests(this.local.tracker.inFlight);
  }

  note(): NotedRequests {
    return (this.local.tracker.reports.noted = new NotedRequests());
  }

  /**
   * What is at work now. Also called in the middle of what blocks this process. A stream of events
   * that has begun is at work in every worker that ends, whatever ends it.
   */
  get suspects(): Suspects {
    const current = this.#flights?.current;
    if (current !== undefined) return { certain: true, suspects: [current] };
    const suspects = this.local.tracker.inFlight
      .filter(({ request, response }) => {
        return !this.#guard.holds(request) && !isOpenEventStream(response);
      })
      .map(({ request }) => this.#fingerprint(request))
      .filter((each) => each !== undefined && this.#flights?.isCleared(each) !== true)
      .map((each) => each!);
    return { certain: false, suspects: suspects.slice(-MAX_SUSPECTS) };
  }

  /** This process ends by an error that nobody caught, or has called `process.exit()`. */
  tellSuspects(by: 'error' | 'exit'): void {
    const found = this.suspects;
    // An error without the context of a request is none's: the request may have been answered before.
    // One that is not watched has no context, but `process.exit()` runs in the middle of it.
    const isNone = !found.certain && (by === 'error' || this.#flights !== undefined);
    this.#flights?.fallSilent();
    const told = isNone ? { certain: true, suspects: [] } : found;
    void this.channel.send({ type: 'suspects', ...told });
  }

  #fingerprint(request: RequestLine): Fingerprint | undefined {
    const found = this.routes.fingerprint(request);
    // Nothing keeps the package's own endpoints from being answered.
    const isOwn = this.local.endpoints.some(
      (path) => found.path === path || found.path.startsWith(`${path}/`),
    );
    return isOwn ? undefined : found;
  }
}
