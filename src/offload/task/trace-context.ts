import { type CarriedContexts, carryContext } from './carry-context.js';

/** The part of a trace that is sent to a thread or with a job: headers of W3C Trace Context, or of the app's propagator. */
export type TraceCarrier = Record<string, string>;

/** The names of a task that are written to its spans. */
export interface TracedTask {
  /** The task's name in metrics. */
  readonly name: string;
  /** `Class.method`. */
  readonly functionName: string;
}

/** When a body ran, in ms of the clock that all threads of a process share. */
export interface RunTimes {
  readonly begunAt: number;
  readonly endedAt: number;
  /** Whether the run has a span, made by a tracer in its thread. */
  readonly hasSpan: boolean;
}

/** Traces a call in the thread of its caller. */
export interface CallTrace {
  /** The call has left the queue. */
  began(): void;
  /** The thread has reported when the call ran. */
  ran(times: RunTimes | undefined): void;
  /** Another process has run the call and made its spans. */
  tracedElsewhere(): void;
  completed(): void;
  failed(error: unknown): void;
}

/** A call whose trace began in another process. */
export interface Arrived {
  readonly trace: CallTrace;
  readonly carrier: TraceCarrier;
}

/** The tracer of a thread. */
export interface Tracing {
  /** @returns what continues the active trace elsewhere; `undefined` if no trace is active. */
  inject(): TraceCarrier | undefined;
  /** Runs `body` in the trace of the carrier. */
  withCarrier<R>(carrier: TraceCarrier, body: () => R): R;
  /** Runs the body of a task in a span, as a child of the active span. */
  run<R>(task: TracedTask, body: () => Promise<R>): Promise<R>;
  /** @returns `undefined` without an active span. */
  follow(task: TracedTask): CallTrace | undefined;
  /**
   * Continues the trace of a call that was made in another process.
   *
   * @param madeAt ms since the epoch.
   * @returns the trace here and the carrier for the thread; `undefined` if the call has no trace.
   */
  arrived(task: TracedTask, carrier: TraceCarrier, madeAt: number): Arrived | undefined;
}

const TRACING = Symbol.for('nestjs-cluster.tracing');

// On globalThis, so that two copies of this package share one tracer.
const holder = globalThis as { [TRACING]?: Tracing };

/** The name of the carrier among the contexts of a call. */
const CARRIED_AS = 'nestjs-cluster.trace';

/** Traces all further calls that are made or run in this thread. */
export function setTracing(tracing: Tracing): void {
  holder[TRACING] = tracing;
  carryContext<TraceCarrier>(CARRIED_AS, {
    getStore: () => tracing.inject(),
    run: (carrier, body) => tracing.withCarrier(carrier, body),
  });
}

export function currentTracing(): Tracing | undefined {
  return holder[TRACING];
}

/** Whether the caller traces the call. */
export function isTraced(contexts: CarriedContexts | undefined): boolean {
  return contexts !== undefined && Object.hasOwn(contexts, CARRIED_AS);
}

/**
 * Continues the trace of a call that was made in another process. `contexts` may be anything,
 * because that process is not trusted.
 *
 * @param madeAt ms since the epoch.
 * @returns the contexts for the thread, and the trace if there is one.
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
