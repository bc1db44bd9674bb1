import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type BlockedRequest,
  type Fingerprint,
  MAX_SUSPECTS,
  type PrimaryMessage,
} from '../../contract/ipc/index.js';
import { isOpenEventStream } from '../http/event-stream.js';
import type { LocalLink } from '../link/local-link.js';
import type { PrimaryChannel } from '../link/primary-channel.js';
import { describeRequests, isUnder, type RequestLine } from './describe-request.js';
import { type Flight, Flights } from './flights.js';
import type { RequestGate } from './request-gate.js';
import { RequestGuard } from './request-guard.js';

/** The requests that may have ended this process. */
export interface Suspects {
  /** Whether the cause is known: either one request, found by its asynchronous context, or no request. */
  readonly certain: boolean;
  readonly suspects: readonly Fingerprint[];
}

/** The worker's part in finding requests that end workers and in refusing such requests. */
export class RequestWatch {
  readonly #guard: RequestGuard;
  #flights: Flights | undefined;

  constructor(
    private readonly local: Pick<LocalLink, 'tracker' | 'endpoints'>,
    private readonly gate: RequestGate,
    private readonly channel: Pick<PrimaryChannel, 'send'>,
  ) {
    this.#guard = new RequestGuard(
      gate,
      (request) => this.#fingerprint(request),
      (id, lived) => void channel.send({ type: 'trial', id, lived }),
      () => this.#flights?.give(),
    );
    // 'exit' is emitted in the asynchronous context of the call of process.exit().
    process.once('exit', () => this.tellSuspects('exit'));
  }

  /** Applies the primary's decision: whether requests are watched, and which requests are refused. */
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
    // The guard does not hold HTTP/2 requests, so they are reported here.
    if (flight !== undefined && request.httpVersionMajor > 1) this.#flights?.give(flight);
    return flight;
  }

  enter(flight: Flight): void {
    this.#flights?.enter(flight);
  }

  /** The requests in flight, the oldest first. */
  get requests(): readonly BlockedRequest[] {
    return describeRequests(this.local.tracker.inFlight);
  }

  /**
   * The requests that run now. Also called while this process is blocked, by interrupting the blocking
   * code. Leaves out event streams, because these are open in every worker, whatever ends the worker.
   */
  get suspects(): Suspects {
    const current = this.#flights?.current;
    if (current !== undefined) return { certain: true, suspects: [current] };
    const suspects = this.local.tracker.inFlight
      .filter(({ request, response }) => {
        return !this.gate.held.has(request) && !isOpenEventStream(response);
      })
      .map(({ request }) => this.#fingerprint(request))
      .filter((each) => each !== undefined)
      .filter((each) => !this.#flights?.isCleared(each));
    return { certain: false, suspects: suspects.slice(-MAX_SUSPECTS) };
  }

  /** Reports the suspects when the process ends by an uncaught error or by `process.exit()`. */
  tellSuspects(by: 'error' | 'exit'): void {
    const found = this.suspects;
    // An error outside of any request's context is not blamed on a request: its request may have ended
    // before. `process.exit()` in a request that is not watched has no context either, but runs
    // while the request is in flight, so all requests in flight are suspects.
    const isNone = !found.certain && (by === 'error' || this.#flights !== undefined);
    this.#flights?.fallSilent();
    const told = isNone ? { certain: true, suspects: [] } : found;
    void this.channel.send({ type: 'suspects', ...told });
  }

  #fingerprint(request: RequestLine): Fingerprint | undefined {
    const found = this.gate.routes.fingerprint(request);
    // The package's own endpoints are never suspects, so that they are always answered.
    return found && isUnder(this.local.endpoints, found.path) ? undefined : found;
  }
}
