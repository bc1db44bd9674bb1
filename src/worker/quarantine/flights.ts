import { AsyncLocalStorage } from 'node:async_hooks';
import type { ServerResponse } from 'node:http';
import type { Fingerprint } from '../../contract/ipc/index.js';
import { isOpenEventStream } from '../http/event-stream.js';

/** A request stays a suspect for this time after its client has disconnected. */
const ABANDONED_MS = 5_000;

/** Maximum of reported requests of one URL. Once it is reached, the URL is not a suspect any more. */
const TOLD_EACH = 20;

/** Maximum number of URLs whose requests are counted. Requests of other URLs are always reported. */
const MAX_COUNTED = 1_000;

/** The interval at which requests are checked: those that have become event streams are not suspects. */
const STREAMS_MS = 100;

/** Maximum number of ended requests that wait to be reported. Further requests are not reported. */
const MAX_UNTOLD = 500;

/** Reports to the primary which request begins and which have ended, by their numbers. */
export type TellFlight = (
  n: number,
  began: Fingerprint | undefined,
  ended: readonly number[],
) => void;

/** A watched request. */
export class Flight {
  /** The number under which the request was reported to the primary. */
  n: number | undefined;

  constructor(
    readonly fingerprint: Fingerprint,
    readonly response: ServerResponse,
    private readonly ended: (flight: Flight) => void,
  ) {}

  get isStream(): boolean {
    return isOpenEventStream(this.response);
  }

  /** The response is complete. */
  end(): void {
    this.ended(this);
  }

  /** The client disconnected. The work for the request may go on for a while. */
  abandon(): void {
    setTimeout(this.ended, ABANDONED_MS, this).unref();
  }
}

/**
 * Watches requests for some minutes after a worker has ended. Reports each request to the primary
 * before its handler runs, so that the primary knows the running requests if this process crashes.
 * Runs each request in an asynchronous context, to find the request of an uncaught error.
 */
export class Flights {
  readonly #contexts = new AsyncLocalStorage<Flight>();
  readonly #told = new Map<string, number>();
  /** The requests that were reported to the primary and have not ended. */
  readonly #flying = new Set<Flight>();
  #ended: number[] = [];
  #last = 0;
  #silent = false;
  #timer: NodeJS.Timeout | undefined;

  readonly #streams = setInterval(() => {
    for (const flight of this.#flying) if (flight.isStream) this.#end(flight);
  }, STREAMS_MS).unref();

  constructor(private readonly tell: TellFlight) {}

  /** The request in whose asynchronous context the current code runs. */
  get current(): Fingerprint | undefined {
    return this.#contexts.getStore()?.fingerprint;
  }

  /** Whether the URL is not a suspect, because {@link TOLD_EACH} of its requests were reported. */
  isCleared({ url }: Fingerprint): boolean {
    return (this.#told.get(url) ?? 0) >= TOLD_EACH;
  }

  /** A request has arrived. */
  begin(fingerprint: Fingerprint, response: ServerResponse): Flight {
    return new Flight(fingerprint, response, (flight) => this.#end(flight));
  }

  /** Hands a request to the app. `flight` defaults to the request of the current context. */
  give(flight = this.#contexts.getStore()): void {
    if (flight === undefined || this.isCleared(flight.fingerprint)) return;
    const { url } = flight.fingerprint;
    const told = this.#told.get(url) ?? 0;
    if (told > 0 || this.#told.size < MAX_COUNTED) this.#told.set(url, told + 1);
    flight.n = this.#last += 1;
    this.#flying.add(flight);
    this.tell(flight.n, flight.fingerprint, this.#ended.splice(0));
  }

  enter(flight: Flight): void {
    this.#contexts.enterWith(flight);
  }

  /** The process ends because of a request. From now on no request is reported as ended. */
  fallSilent(): void {
    this.#silent = true;
  }

  /** Also disables the AsyncLocalStorage, because on Node 20 an active storage slows every promise down. */
  stop(): void {
    clearTimeout(this.#timer);
    clearInterval(this.#streams);
    this.#contexts.disable();
  }

  #end(flight: Flight): void {
    if (!this.#flying.delete(flight)) return;
    if (this.#ended.length < MAX_UNTOLD) this.#ended.push(flight.n!);
    // Reported with a delay, because the report says that the worker survived the request.
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      if (this.#ended.length > 0 && !this.#silent) this.tell(0, undefined, this.#ended.splice(0));
    }, 50).unref();
  }
}
