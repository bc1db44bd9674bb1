import { AsyncLocalStorage } from 'node:async_hooks';
import type { ServerResponse } from 'node:http';
import type { Fingerprint } from '../../contract/ipc/index.js';
import { isOpenEventStream } from '../http/event-stream.js';

/** Time for work that goes on after its client has left. */
const ABANDONED_MS = 5_000;

/** Requests of one URL that are told. A URL answered this often is not a suspect. */
const TOLD_EACH = 20;

/** Different URLs that are counted. */
const MAX_COUNTED = 1_000;

/** How often it looks which requests have become streams of events. */
const STREAMS_MS = 100;

/** Requests ended that wait to be told with the next one that begins. */
const MAX_UNTOLD = 500;

/** Tells the primary what a worker is at. */
export type TellFlight = (
  n: number,
  began: Fingerprint | undefined,
  ended: readonly number[],
) => void;

/** One request that is watched. */
export class Flight {
  /** Its number, once it was told. */
  n: number | undefined;

  constructor(
    readonly fingerprint: Fingerprint,
    private readonly response: ServerResponse,
    private readonly ended: (flight: Flight) => void,
  ) {}

  get isStream(): boolean {
    return isOpenEventStream(this.response);
  }

  /** It was answered. */
  end(): void {
    this.ended(this);
  }

  /** Its client is gone: what was begun for it goes on for a while. */
  abandon(): void {
    setTimeout(this.ended, ABANDONED_MS, this).unref();
  }
}

/**
 * Watches requests closely, for some minutes after a worker has ended: each is
 * told to the primary before its handler runs, so that the primary knows what
 * was at work if this process ends without a word; and each runs in an
 * asynchronous context, so that an error that nobody caught has a request.
 */
export class Flights {
  readonly #contexts = new AsyncLocalStorage<Flight>();
  readonly #told = new Map<string, number>();
  /** The primary believes that these are at work. */
  readonly #flying = new Set<Flight>();
  #ended: number[] = [];
  #last = 0;
  #silent = false;
  #timer: NodeJS.Timeout | undefined;

  readonly #streams = setInterval(() => {
    for (const flight of this.#flying) if (flight.isStream) this.#end(flight);
  }, STREAMS_MS).unref();

  constructor(private readonly tell: TellFlight) {}

  /** The request whose context the code has that runs now. */
  get current(): Fingerprint | undefined {
    return this.#contexts.getStore()?.fingerprint;
  }

  /** Whether the URL was answered so often that it is not a suspect. */
  isCleared({ url }: Fingerprint): boolean {
    return (this.#told.get(url) ?? 0) >= TOLD_EACH;
  }

  /** A request has arrived. */
  begin(fingerprint: Fingerprint, response: ServerResponse): Flight {
    return new Flight(fingerprint, response, (flight) => this.#end(flight));
  }

  /** The app is about to be given a request: without `flight` the one whose context this is. */
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

  /** The process ends over one of its requests: no answer clears one any more. */
  fallSilent(): void {
    this.#silent = true;
  }

  /** On Node 20 a storage in use costs every promise of the process. */
  stop(): void {
    clearTimeout(this.#timer);
    clearInterval(this.#streams);
    this.#contexts.disable();
  }

  #end(flight: Flight): void {
    if (!this.#flying.delete(flight)) return;
    if (this.#ended.length < MAX_UNTOLD) this.#ended.push(flight.n!);
    // Told a little later: a worker that says so has lived on.
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      if (this.#ended.length > 0 && !this.#silent) this.tell(0, undefined, this.#ended.splice(0));
    }, 50).unref();
  }
}
