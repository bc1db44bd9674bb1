import { type CarriedContexts, carryContext } from './carry-context.js';

/** The part of a trace that travels to a thread or with a job: headers of W3C Trace Context, or of the app's propagator. */
export type TraceCarrier = Record<string, string>;

/** The names of a task in its spans. */
export interface TracedTask {
  /** Its name in metrics. */
  readonly name: string;
  /** `Class.method`. */
  readonly functionName: string;
}

/** When a body ran; ms of the clock that all threads of a process have in common. */
export interface RunTimes {
  readonly begunAt: number;
  readonly endedAt: number;
  /** It has its span: somebody collects the spans of its thread. */
  readonly hasSpan: boolean;
}

/** Follows a call for the one who made it, who knows how it ended. */
export interface CallTrace {
  /** It has left the queue. */
  began(): void;
  /** Another call that is the same answers it. */
  joined(): void;
  /** Its thread has told when it ran. */
  ran(times: RunTimes | undefined): void;
  /** Another process ran it, and has made its spans. */
  tracedElsewhere(): void;
  completed(): void;
  failed(error: unknown): void;
}

/** A call whose trace began in another process. */
export interface Arrived {
  readonly trace: CallTrace;
  readonly carrier: TraceCarrier;
}

/** The tracer of this thread. Without it nothing is traced. */
export interface Tracing {
  inject(): TraceCarrier | undefined;
  withCarrier<R>(carrier: TraceCarrier, body: () => R): R;
  /** Runs the body of a task in a span that is the child of whatever is active. */
  run<R>(task: TracedTask, body: () => Promise<R>): Promise<R>;
  /** @returns `undefined` without a span that could have children. */
  follow(task: TracedTask): CallTrace | undefined;
  /**
   * Goes on with the trace of a call that was made in another process.
   *
   * @param madeAt ms since the epoch.
   * @returns its spans here, and what travels on to its thread; `undefined` where nothing has come.
   */
  arrived(task: TracedTask, carrier: TraceCarrier, madeAt: number): Arrived | undefined;
}

const TRACING = Symbol.for('nestjs-cluster.tracing');

// On globalThis, like what else a thread carries: two copies of this package trace as one.
const holder = globalThis as { [TRACING]?: Tracing };

/** Under which the carrier is among the contexts of a call. */
const CARRIED_AS = 'nestjs-cluster.trace';

/** From now on calls of this thread, or in it, are traced. */
export function setTracing(tracing: Tracing): void {
  holder[TRACING] = tracing;
  carryContext<TraceCarrier>(CARRIED_AS, { getStore: inject, run: withCarrier });
}

export function currentTracing(): Tracing | undefined {
  return holder[TRACING];
}

/** Whether the one who made the call wants to know when it ran. */
export function isTraced(contexts: CarriedContexts | undefined): boolean {
  return contexts !== undefined && Object.hasOwn(contexts, CARRIED_AS);
}

/**
 * Goes on with the trace of a call that was made in another process, which may have written
 * anything.
 *
 * @param madeAt ms since the epoch.
 * @returns the contexts for its thread, and its spans where there are any.
 */
export function arrive(
  task: TracedTask,
  contexts: unknown,
  madeAt: number,
): { readonly contexts: CarriedContexts | undefined; readonly trace: CallTrace | undefined } {
  if (typeof contexts !== 'object' || contexts === null) {
    return { contexts: undefined, trace: undefined };
  }
  const { [CARRIED_AS]: carrier, ...others } = contexts as Record<string, unknown>;
  if (!isCarrier(carrier)) return { contexts: others, trace: undefined };
  const arrived = holder[TRACING]?.arrived(task, carrier, madeAt);
  return {
    contexts: { ...others, [CARRIED_AS]: arrived?.carrier ?? carrier },
    trace: arrived?.trace,
  };
}

function isCarrier(value: unknown): value is TraceCarrier {
  if (typeof value !== 'object' || value === null) return false;
  return Object.values(value).every((header) => typeof header === 'string');
}

/** The headers by which others go on with the active trace; `undefined` without one. */
export function inject(): TraceCarrier | undefined {
  return holder[TRACING]?.inject();
}

/** Runs `body` in the trace that has arrived. */
export function withCarrier<R>(carrier: TraceCarrier | undefined, body: () => R): R {
  const tracing = holder[TRACING];
  return carrier === undefined || tracing === undefined
    ? body()
    : tracing.withCarrier(carrier, body);
}
