import { AsyncResource } from 'node:async_hooks';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { InForce, LimitOptions } from '../../contract/options/index.js';
import type { LimitReadings } from '../../contract/snapshot/index.js';
import { isOpenEventStream } from '../http/event-stream.js';
import { describeRequest, isUnder } from '../quarantine/describe-request.js';
import { type GateStep, refuse, type RequestGate } from '../quarantine/request-gate.js';
import { type LimitState, nextLimit, UNLIMITED } from './limit-policy.js';
import { type Waiter, WaitingLine } from './waiting-line.js';

interface HeldRequest extends Waiter {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  handOver: () => void;
}

/** A shorter window would have few responses of a slow app. */
const WINDOW_MS = 500;

/**
 * How long the app may get requests in one turn of the event loop. A handler that does not wait ends
 * before Node reads the next request, so that without this bound no two requests would ever be seen
 * at once: they would wait in the kernel, without an order and without an end.
 */
const TURN_MS = 2;

const REFUSAL = {
  message: 'This server has more requests than it can answer in time. Try again later.',
  retryAfterSeconds: 1,
};

/** Gives the app as many requests at once as the policy allows. Others wait for a short time, or get 503. */
export class RequestLimit {
  #state: LimitState;
  /** The requests that the app has, with the time of their hand-over in monotonic ms, if they are measured. */
  readonly #running = new Map<ServerResponse, number | undefined>();
  readonly #line = new WaitingLine<HeldRequest>();
  /** When the app got the first request in this turn of the event loop. */
  #turnBegan: number | undefined;
  #peak = 0;
  #sumMs = 0;
  #ended = 0;
  #elu = performance.eventLoopUtilization();
  readonly #windows = setInterval(() => this.#endWindow(), WINDOW_MS).unref();
  #overdue: NodeJS.Timeout | undefined;

  constructor(
    private readonly options: InForce<LimitOptions>,
    private readonly readings: LimitReadings,
    private readonly gate: RequestGate,
    /** The paths of this package's endpoints. */
    private readonly endpoints: () => readonly string[],
  ) {
    this.#state = { ...UNLIMITED, limit: options.maxRequests };
  }

  stop(): void {
    clearInterval(this.#windows);
  }

  readonly admit: GateStep = (request, response, handOver) => {
    const { method, path } = describeRequest(request);
    if (isUnder(this.endpoints(), path)) return handOver();
    const priority = this.gate.routes.priority(method, path);
    // Not measured: the light requests of critical routes would hide that others wait.
    if (priority === 'critical') return this.#start(response, handOver, undefined);
    const since = performance.now();
    if (this.#line.size === 0 && this.#hasRoom()) return this.#start(response, handOver, since);
    const held: HeldRequest = { request, response, handOver, priority, since };
    this.gate.held.add(request);
    const refused = this.#line.add(held, this.#limits ? this.readings.limit : Infinity);
    if (refused !== undefined) this.#shed(refused);
    // The app gets the request in the request's asynchronous context.
    if (refused !== held) held.handOver = AsyncResource.bind(handOver);
    if (this.#overdue !== undefined) return;
    this.#overdue = setTimeout(this.#refuseOverdue, this.options.queueMs);
  };

  /** Called when a response was sent, or its client has disconnected. */
  ended(response: ServerResponse, answered: boolean): void {
    const since = this.#running.get(response);
    if (!this.#running.delete(response)) return;
    if (answered && since !== undefined) {
      this.#sumMs += performance.now() - since;
      this.#ended += 1;
    }
    if (this.#line.size > 0) this.#nextTurn();
  }

  /** Whether the limit is in force. Otherwise requests only wait for their turn of the event loop. */
  get #limits(): boolean {
    return this.readings.limit < Infinity;
  }

  /** Whether the app may get another request in this turn. Plans the next turn, unless the limit is reached. */
  #hasRoom(): boolean {
    if (this.#running.size >= this.readings.limit) return false; // plans no turn: the loop may idle
    return performance.now() - this.#nextTurn() <= TURN_MS;
  }

  /** @returns when the app got the first request in this turn, in monotonic ms. */
  #nextTurn(): number {
    if (this.#turnBegan !== undefined) return this.#turnBegan;
    setImmediate(this.#onTurn);
    return (this.#turnBegan = performance.now());
  }

  readonly #onTurn = (): void => {
    this.#turnBegan = undefined;
    while (this.#line.size > 0 && this.#hasRoom()) {
      const { request, response, handOver } = this.#line.take()!;
      this.gate.held.delete(request);
      if (isConnected(request, response)) this.#start(response, handOver, performance.now());
    }
  };

  #start(response: ServerResponse, handOver: () => void, since: number | undefined): void {
    this.#running.set(response, since);
    this.#peak = Math.max(this.#peak, this.#running.size);
    handOver();
  }

  readonly #refuseOverdue = (): void => {
    this.#overdue = undefined;
    const now = performance.now();
    const { queueMs } = this.options;
    if (this.#limits) this.#line.takeBefore(now - queueMs).forEach((held) => this.#shed(held));
    const { oldest } = this.#line;
    if (oldest === undefined) return;
    // At least a millisecond, because in a timer of 0 ms the event loop would never be idle.
    this.#overdue = setTimeout(this.#refuseOverdue, Math.max(1, oldest + queueMs - now));
  };

  #shed({ request, response, priority }: HeldRequest): void {
    this.gate.held.delete(request);
    this.readings.shed[priority] += 1;
    if (isConnected(request, response)) refuse(request, response, REFUSAL);
  }

  #endWindow(): void {
    const elu = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(elu, this.#elu);
    const latencyMs = this.#ended === 0 ? undefined : this.#sumMs / this.#ended;
    this.#state = nextLimit(
      this.#state,
      { utilization, peak: this.#peak, latencyMs },
      this.options,
    );
    this.readings.limit = Math.floor(this.#state.limit);
    for (const response of this.#running.keys()) {
      // An event stream stays open as long as its client wants, without work for the event loop.
      if (isOpenEventStream(response)) this.#running.delete(response);
    }
    this.#elu = elu;
    this.#peak = this.#running.size;
    this.#sumMs = this.#ended = 0;
    if (this.#line.size > 0) this.#nextTurn();
  }
}

/** Whether the client is still there. An HTTP/2 response has a stream until that is closed. */
function isConnected(request: IncomingMessage, response: ServerResponse): boolean {
  if (request.httpVersionMajor < 2) return request.socket.writable;
  const { stream } = response as { stream?: { destroyed: boolean } };
  return stream?.destroyed === false;
}
