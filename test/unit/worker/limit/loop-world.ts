import {
  type LimitState,
  nextLimit,
  UNLIMITED,
} from '../../../../src/worker/limit/limit-policy.js';
import { type Waiter, WaitingLine } from '../../../../src/worker/limit/waiting-line.js';

/** A route: its work on the event loop, in slices, and its waits for a database between the slices. */
export interface SimulatedRoute {
  readonly cpuMs: number;
  readonly waitMs: number;
  /** Default 1: all in one piece, with the wait before its end. */
  readonly slices?: number;
}

/** Requests that arrive at random times. */
export interface Phase {
  readonly seconds: number;
  readonly load: readonly (SimulatedRoute & { readonly perSecond: number })[];
}

interface SimulatedRequest extends Waiter {
  readonly route: SimulatedRoute;
  left: number;
  handedOverAt: number;
}

/** The events of one second. */
export interface Second {
  answered: number;
  shed: number;
  /** From the arrival to the answer, in ms. */
  readonly latencies: number[];
  limit: number;
}

const WINDOW_MS = 500;
const TURN_MS = 2;
const SHED_MS = 0.05;
const QUEUE_MS = 100;
const BOUNDS = { minRequests: 1, maxRequests: Infinity };

/** An event loop in simulated time, which the policy of the limit and the line of requests serve. */
export class LoopWorld {
  readonly seconds: Second[] = [];
  state: LimitState = UNLIMITED;
  #now = 0;
  #idleMs = 0;
  #window = { startsAt: 0, idleMs: 0, peak: 0, sumMs: 0, ended: 0 };
  readonly #line = new WaitingLine<SimulatedRequest>();
  /** Requests that wait for a database, by the time at which it answers. */
  readonly #waiting: { readonly at: number; readonly request: SimulatedRequest }[] = [];
  #running = 0;
  #random: () => number;

  constructor(
    seed: number,
    private readonly limited = true,
  ) {
    this.#random = randomFrom(seed);
  }

  run(phase: Phase): void {
    const arrivals = this.#arrivals(phase);
    const end = this.#now + phase.seconds * 1_000;
    while (this.#now < end) {
      while (arrivals.length > 0 && arrivals.at(-1)!.since <= this.#now)
        this.#arrive(arrivals.pop()!);
      const pending = this.#waiting.findIndex(({ at }) => at > this.#now);
      const turn = this.#waiting.splice(0, pending === -1 ? this.#waiting.length : pending);
      for (const { request } of turn) this.#slice(request);
      this.#handOver();
      if (this.#now >= this.#window.startsAt + WINDOW_MS) this.#endWindow();
      if (turn.length > 0 || this.#mayHandOver()) continue;
      const next = Math.min(
        arrivals.at(-1)?.since ?? end,
        end,
        this.#window.startsAt + WINDOW_MS,
        this.#waiting[0]?.at ?? end,
      );
      this.#idleMs += Math.max(0, next - this.#now);
      this.#now = Math.max(this.#now, next);
    }
  }

  /** The sum over the last seconds. */
  last(seconds: number): { answered: number; shed: number; p99Ms: number; limits: number[] } {
    const counted = this.seconds.slice(0, Math.floor(this.#now / 1_000)).slice(-seconds);
    const latencies = counted.flatMap((each) => each.latencies).sort((a, b) => a - b);
    return {
      answered: counted.reduce((sum, each) => sum + each.answered, 0) / seconds,
      shed: counted.reduce((sum, each) => sum + each.shed, 0) / seconds,
      p99Ms: latencies[Math.floor(latencies.length * 0.99)] ?? 0,
      limits: counted.map(({ limit }) => limit),
    };
  }

  get #limit(): number {
    return this.limited ? Math.floor(this.state.limit) : Infinity;
  }

  #arrivals({ seconds, load }: Phase): SimulatedRequest[] {
    return load
      .flatMap((route) => {
        const came: SimulatedRequest[] = [];
        for (let at = this.#now; at < this.#now + seconds * 1_000;) {
          at += (-Math.log(1 - this.#random()) * 1_000) / route.perSecond;
          const left = route.slices ?? 1;
          came.push({ priority: 'normal', since: at, route, left, handedOverAt: 0 });
        }
        return came;
      })
      .sort((a, b) => b.since - a.since);
  }

  #arrive(request: SimulatedRequest): void {
    const most = this.#limit === Infinity ? Infinity : this.#limit;
    if (this.#line.add(request, most) !== undefined) this.#shed();
  }

  #shed(): void {
    this.#now += SHED_MS;
    this.#second().shed += 1;
  }

  #mayHandOver(): boolean {
    return this.#line.size > 0 && this.#running < this.#limit;
  }

  #handOver(): void {
    if (this.#limit < Infinity) {
      for (const _ of this.#line.takeBefore(this.#now - QUEUE_MS)) this.#shed();
    }
    const began = this.#now;
    while (this.#mayHandOver() && this.#now - began <= TURN_MS) {
      const request = this.#line.take()!;
      request.handedOverAt = this.#now;
      this.#running += 1;
      this.#window.peak = Math.max(this.#window.peak, this.#running);
      this.#slice(request);
    }
  }

  #slice(request: SimulatedRequest): void {
    const { cpuMs, waitMs, slices = 1 } = request.route;
    if (request.left > 0) this.#now += cpuMs / slices;
    request.left -= 1;
    const waits = Math.max(1, slices - 1);
    if (request.left > 0 || (request.left === 0 && slices === 1 && waitMs > 0)) {
      const at = this.#now + waitMs / waits;
      const later = this.#waiting.findLastIndex((other) => other.at <= at);
      this.#waiting.splice(later + 1, 0, { at, request });
    } else {
      this.#answer(request);
    }
  }

  #answer(request: SimulatedRequest): void {
    this.#running -= 1;
    this.#window.sumMs += this.#now - request.handedOverAt;
    this.#window.ended += 1;
    const second = this.#second();
    second.answered += 1;
    second.latencies.push(this.#now - request.since);
  }

  #endWindow(): void {
    const { startsAt, idleMs, peak, sumMs, ended } = this.#window;
    this.state = nextLimit(
      this.state,
      {
        utilization: 1 - (this.#idleMs - idleMs) / (this.#now - startsAt),
        peak,
        latencyMs: ended === 0 ? undefined : sumMs / ended,
      },
      BOUNDS,
    );
    this.#second().limit = this.state.limit;
    this.#window = {
      startsAt: this.#now,
      idleMs: this.#idleMs,
      peak: this.#running,
      sumMs: 0,
      ended: 0,
    };
  }

  #second(): Second {
    const index = Math.floor(this.#now / 1_000);
    while (this.seconds.length <= index) {
      this.seconds.push({ answered: 0, shed: 0, latencies: [], limit: this.state.limit });
    }
    return this.seconds[index]!;
  }
}

/** Mulberry32: a small generator of random numbers with a seed. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
