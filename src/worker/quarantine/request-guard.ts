import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Fingerprint, QuarantineEntry } from '../../contract/ipc/index.js';
import { type GateStep, refuse, type RequestGate } from './request-gate.js';

/** A trial request has succeeded if the worker is alive this long after the response. */
const SETTLED_MS = 2_000;

const REFUSAL = {
  message: 'Requests like this one have ended workers of this server. Try again later.',
  retryAfterSeconds: 60, // by then another trial has been made
};

/**
 * Answers requests under quarantine with 503 in place of the app. While requests are watched, drops
 * requests whose clients have disconnected: after a worker has ended, such requests wait in the
 * accept queue for the next worker.
 */
export class RequestGuard {
  #entries: readonly QuarantineEntry[] = [];
  #watch = false;
  /** The ids of the quarantine entries for which this worker has begun a trial. */
  readonly #tried = new Set<number>();

  constructor(
    private readonly gate: RequestGate,
    private readonly fingerprint: (request: IncomingMessage) => Fingerprint | undefined,
    private readonly tell: (id: number, lived: boolean) => void,
    /** Called before the app gets a watched request, in the request's asynchronous context. */
    private readonly give: () => void,
  ) {}

  /** Sets which requests are under quarantine from now on, and whether requests are watched. */
  set(entries: readonly QuarantineEntry[], watch: boolean): void {
    this.#entries = entries;
    this.#watch = watch;
    // Forgets a trial that this worker may no longer make, because the primary may allow another later.
    for (const { id, trial } of entries) if (!trial) this.#tried.delete(id);
    this.gate.quarantine = watch || entries.length > 0 ? this.#pass : undefined;
  }

  readonly #pass: GateStep = (request, response, handOver) => {
    const answer = (): void => {
      if (this.#turnsAway(request, response)) refuse(request, response, REFUSAL);
      else handOver();
    };
    if (this.#watch && request.httpVersionMajor < 2) this.#hold(request, answer);
    else answer();
  };

  /**
   * Holds a request until it is clear whether its client is still connected. Holds every HTTP/1.1
   * request, not only the first of a connection, to keep their order: the request that blocks the
   * event loop must be the last that the app got. An HTTP/2 client is known to be connected.
   */
  #hold(request: IncomingMessage, handOver: () => void): void {
    this.gate.held.add(request);
    // Waits two turns: Node reads the request in one turn, and the connection's end in the next.
    setImmediate(() =>
      setImmediate(() => {
        this.gate.held.delete(request);
        // If the client has ended the connection, Node has ended it too, so the socket is not
        // writable. With `httpAllowHalfOpen`, Node does not, and the request reaches the app.
        if (!request.socket.writable) return void request.socket.destroy();
        this.give();
        handOver();
      }),
    );
  }

  #turnsAway(request: IncomingMessage, response: ServerResponse): boolean {
    const own = this.fingerprint(request);
    if (own === undefined) return false;
    const entry = this.#entries.find(
      ({ method, route, url }) =>
        method === own.method && route === own.route && (url ?? own.url) === own.url,
    );
    if (entry === undefined) return false;
    const { id, trial } = entry;
    if (!trial || this.#tried.has(id)) return true;
    this.#tried.add(id);
    this.tell(id, false);
    response.once('close', () => {
      setTimeout(() => this.tell(id, true), SETTLED_MS).unref();
    });
    return false;
  }
}
