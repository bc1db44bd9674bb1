import type * as OpenTelemetryApi from '@opentelemetry/api';
import type {
  Arrived,
  CallTrace,
  TraceCarrier,
  TracedTask,
  Tracing,
} from '../task/trace-context.js';
import { CallSpans, markFailed } from './call-spans.js';
import { harmless, harmlesslyIn } from './harmless.js';

/** The used part of the API. An import here would make bundlers need the package in every app, so it is passed in. */
type Api = Pick<typeof OpenTelemetryApi, 'context' | 'propagation' | 'trace' | 'ROOT_CONTEXT'>;

/** Traces with the OpenTelemetry API, with any SDK. */
export class OpenTelemetry implements Tracing {
  readonly #tracer;
  readonly #attributes = new Map<string, OpenTelemetryApi.Attributes>();

  constructor(private readonly api: Api) {
    this.#tracer = api.trace.getTracer('nestjs-cluster');
  }

  inject(): TraceCarrier | undefined {
    return harmless(() => {
      const { context, propagation, trace } = this.api;
      const active = context.active();
      if (trace.getSpanContext(active) === undefined) return undefined;
      const carrier: TraceCarrier = {};
      propagation.inject(active, carrier);
      return carrier;
    });
  }

  withCarrier<R>(carrier: TraceCarrier, body: () => R): R {
    const { context, propagation } = this.api;
    return harmlesslyIn(
      (inner) => context.with(propagation.extract(context.active(), carrier), inner),
      body,
    );
  }

  run<R>(task: TracedTask, body: () => Promise<R>): Promise<R> {
    const attributes = this.#attributesOf(task);
    const run = async (span?: OpenTelemetryApi.Span): Promise<R> => {
      try {
        return await body();
      } catch (error) {
        harmless(() => span && markFailed(span, error));
        throw error;
      } finally {
        harmless(() => span?.end());
      }
    };
    let span: OpenTelemetryApi.Span | undefined;
    return harmlesslyIn(
      (inner) =>
        this.#tracer.startActiveSpan(`run ${task.name}`, { attributes }, (started) => {
          span = started;
          return inner();
        }),
      () => run(span),
    );
  }

  follow(task: TracedTask): CallTrace | undefined {
    return harmless(() => {
      const { context, trace } = this.api;
      const parent = context.active();
      return trace.getSpanContext(parent) && this.#spansOf(task, parent);
    });
  }

  arrived(task: TracedTask, carrier: TraceCarrier, madeAt: number): Arrived | undefined {
    return harmless(() => this.#arrived(task, carrier, madeAt));
  }

  #arrived(task: TracedTask, carrier: TraceCarrier, madeAt: number): Arrived | undefined {
    const { context, propagation, trace, ROOT_CONTEXT } = this.api;
    const made = propagation.extract(ROOT_CONTEXT, carrier);
    const maker = trace.getSpanContext(made);
    if (maker === undefined) return undefined;
    // The library that delivered the call, such as bullmq-otel, may have an active span of the same
    // trace. An active span of another trace does not belong to the call: a loop keeps the span
    // that was active when the loop was started.
    const active = context.active();
    if (trace.getSpanContext(active)?.traceId !== maker.traceId) {
      return { trace: this.#spansOf(task, made, madeAt), carrier };
    }
    const onward: TraceCarrier = {};
    propagation.inject(active, onward);
    return { trace: this.#spansOf(task, active), carrier: onward };
  }

  #spansOf(task: TracedTask, parent: OpenTelemetryApi.Context, madeAt?: number): CallSpans {
    return new CallSpans(this.#tracer, parent, task.name, this.#attributesOf(task), madeAt);
  }

  /** The attributes of a task's spans, created once for all its calls. */
  #attributesOf({ name, functionName }: TracedTask): OpenTelemetryApi.Attributes {
    let attributes = this.#attributes.get(name);
    if (attributes === undefined) {
      attributes = { 'code.function.name': functionName, 'nestjs_cluster.task': name };
      this.#attributes.set(name, attributes);
    }
    return attributes;
  }
}
