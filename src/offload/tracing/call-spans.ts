import type { Attributes, Context, Span, SpanStatusCode, Tracer } from '@opentelemetry/api';
import type { CallTrace, RunTimes } from '../task/trace-context.js';
import { machineClockMs } from '../../contract/ipc/machine-clock.js';
import { harmless } from './harmless.js';

/** The difference between the clock that all threads share and this thread's `performance.now()`, in ms. */
const AHEAD_MS = machineClockMs();

/** The value of OpenTelemetry's constant. Its API is not imported here, because it may not be installed. */
const ERROR: SpanStatusCode.ERROR = 2;

/** Makes the spans of a call when it is over: a span of the wait and, if the thread made none, a span of the run. */
export class CallSpans implements CallTrace {
  // OpenTelemetry's SDK also takes its times from Date.now(), so these spans match its own spans.
  // performance.timeOrigin would be wrong if the clock was set since the start.
  readonly #wallMs = Date.now();
  readonly #startedAt = performance.now();
  /** When the call began, as far as this thread knows, in monotonic ms. */
  #beganAt: number | undefined;
  #isElsewhere = false;
  #ran: RunTimes | undefined;

  constructor(
    private readonly tracer: Tracer,
    private readonly parent: Context,
    private readonly task: string,
    private readonly attributes: Attributes,
    /** When the call was made, if another process made it, in ms since the epoch. */
    private readonly madeAt = Infinity,
  ) {}

  began(): void {
    this.#beganAt = performance.now();
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
    const ran = this.#ran;
    const begunAt = ran === undefined ? this.#beganAt : ran.begunAt - AHEAD_MS;
    const isOver = begunAt === undefined;
    this.#make('queue', this.#startedAt, begunAt ?? now, isOver ? failure : undefined);
    if (isOver || ran?.hasSpan === true) return;
    this.#make('run', begunAt, ran === undefined ? now : ran.endedAt - AHEAD_MS, failure);
  }

  #make(
    what: 'queue' | 'run',
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

  /** Converts a monotonic time to ms since the epoch. */
  #timeOf(at: number): number {
    return this.#wallMs + Math.max(0, at - this.#startedAt);
  }
}

/** Marks a span as failed, only with the type of the error: its message may contain arguments of the call. */
export function markFailed(span: Span, error: unknown): void {
  span.setAttribute('error.type', typeOf(error));
  if (isFault(error)) span.setStatus({ code: ERROR });
}

function typeOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error;
}

/** Whether the error is a fault. As for HTTP spans, a response such as 404 is not a fault. */
function isFault(error: unknown): boolean {
  const { getStatus } = (error ?? {}) as { getStatus?: () => unknown };
  if (typeof getStatus !== 'function') return true;
  const status = getStatus.call(error);
  return typeof status !== 'number' || status >= 500;
}
