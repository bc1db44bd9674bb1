import type { Attributes, Context, Span, SpanStatusCode, Tracer } from '@opentelemetry/api';
import type { CallTrace, RunTimes } from '../task/trace-context.js';
import { monotonicMs } from '../../contract/process/monotonic-ms.js';
import { harmless } from './harmless.js';

/** The difference of this thread's clock to the clock that all threads share. */
const AHEAD_MS = monotonicMs() - performance.now();

/** By its value: no module here imports the API, which need not be installed. */
const ERROR: SpanStatusCode.ERROR = 2;

/**
 * The spans of one call, made when it is over: its wait, and its run where the thread has none of
 * its own to tell of it.
 */
export class CallSpans implements CallTrace {
  // Spans of one process are to fit to each other: their SDK goes by Date.now() too, and
  // performance.timeOrigin is off by what the clock was set since.
  readonly #wallMs = Date.now();
  readonly #startedAt = performance.now();
  /** When it began, as far as this thread knows; monotonic ms. */
  #beganAt: number | undefined;
  #joined = false;
  #isElsewhere = false;
  #ran: RunTimes | undefined;

  constructor(
    private readonly tracer: Tracer,
    private readonly parent: Context,
    private readonly task: string,
    private readonly attributes: Attributes,
    /** When it was made, where that was in another process; ms since the epoch. */
    private readonly madeAt = Infinity,
  ) {}

  began(): void {
    this.#beganAt = performance.now();
  }

  joined(): void {
    this.#joined = true;
  }

  ran(times: RunTimes | undefined): void {
    this.#ran = times;
  }

  tracedElsewhere(): void {
    this.#isElsewhere = true;
  }

  completed(): void {
    harmless(() => this.#end());
  }

  failed(error: unknown): void {
    harmless(() => this.#end({ error }));
  }

  #end(failure?: { readonly error: unknown }): void {
    if (this.#isElsewhere) return;
    const now = performance.now();
    if (this.#joined) return this.#make('join', this.#startedAt, now, failure);
    const ran = this.#ran;
    const begunAt = ran === undefined ? this.#beganAt : ran.begunAt - AHEAD_MS;
    const isOver = begunAt === undefined;
    this.#make('queue', this.#startedAt, begunAt ?? now, isOver ? failure : undefined);
    if (isOver || ran?.hasSpan === true) return;
    this.#make('run', begunAt, ran === undefined ? now : ran.endedAt - AHEAD_MS, failure);
  }

  #make(
    what: 'queue' | 'run' | 'join',
    from: number,
    to: number,
    failure: { readonly error: unknown } | undefined,
  ): void {
    const { attributes } = this;
    const isFirst = from === this.#startedAt;
    const startTime = Math.min(this.#timeOf(from), isFirst ? this.madeAt : Infinity);
    const span = this.tracer.startSpan(
      `${what} ${this.task}`,
      { attributes, startTime },
      this.parent,
    );
    if (failure !== undefined) markFailed(span, failure.error);
    span.end(Math.max(startTime, this.#timeOf(to)));
  }

  /** Ms since 1970. */
  #timeOf(at: number): number {
    return this.#wallMs + Math.max(0, at - this.#startedAt);
  }
}

/** By the type of the error alone: its message may hold what the call was given. */
export function markFailed(span: Span, error: unknown): void {
  span.setAttribute('error.type', typeOf(error));
  if (isFault(error)) span.setStatus({ code: ERROR });
}

function typeOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error;
}

/** As for spans of HTTP: an answer such as 404 is none. */
function isFault(error: unknown): boolean {
  const { getStatus } = (error ?? {}) as { getStatus?: () => unknown };
  if (typeof getStatus !== 'function') return true;
  const status = getStatus.call(error);
  return typeof status !== 'number' || status >= 500;
}
