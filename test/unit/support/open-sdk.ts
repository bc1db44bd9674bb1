import { context, metrics, propagation, trace } from '@opentelemetry/api';
import { NodeSDK, tracing } from '@opentelemetry/sdk-node';
import { onTestFinished } from 'vitest';

const TRACING = Symbol.for('nestjs-cluster.tracing');
const CARRIED = Symbol.for('nestjs-cluster.carried-contexts');

/** A span as a test looks at it. */
export interface SeenSpan {
  readonly name: string;
  readonly id: string;
  readonly parent: string | undefined;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly isError: boolean;
  readonly startMs: number;
  readonly endMs: number;
}

/** The real SDK, which keeps what it exports. Gone when the test is finished. */
export function openSdk(): { readonly spans: () => readonly SeenSpan[] } {
  const exporter = new tracing.InMemorySpanExporter();
  const sdk = new NodeSDK({
    autoDetectResources: false,
    spanProcessors: [new tracing.SimpleSpanProcessor(exporter)],
    metricReaders: [],
    logRecordProcessors: [],
  });
  sdk.start();
  onTestFinished(async () => {
    await sdk.shutdown();
    for (const api of [trace, context, propagation, metrics]) api.disable();
    for (const key of [TRACING, CARRIED, Symbol.for('io.opentelemetry.js.api.logs')]) {
      Reflect.deleteProperty(globalThis, key);
    }
  });
  return { spans: () => exporter.getFinishedSpans().map(see) };
}

function see(span: tracing.ReadableSpan): SeenSpan {
  const { name, parentSpanContext, attributes, status, startTime, endTime } = span;
  return {
    name,
    id: span.spanContext().spanId,
    parent: parentSpanContext?.spanId,
    attributes,
    isError: status.code === 2,
    startMs: startTime[0] * 1e3 + startTime[1] / 1e6,
    endMs: endTime[0] * 1e3 + endTime[1] / 1e6,
  };
}

/** Does something in a span, as a request is served. @returns its id. */
export async function inSpan(body: () => Promise<unknown>): Promise<string> {
  return trace.getTracer('test').startActiveSpan('request', async (span) => {
    await body();
    span.end();
    return span.spanContext().spanId;
  });
}
