import { context, trace } from '@opentelemetry/api';
import { NodeSDK, tracing } from '@opentelemetry/sdk-node';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { runBody } from '../../../../src/offload/task/run-body.js';
import { currentTrace } from '../../../../src/offload/task/trace-context.js';

const activeSpan = () => trace.getSpanContext(context.active());
const inSpan = <R>(body: () => R): R => trace.getTracer('app').startActiveSpan('request', body);
const endApi = () => Reflect.deleteProperty(globalThis, Symbol.for('opentelemetry.js.api.1'));

let sdk: NodeSDK;

beforeEach(() => {
  const exporter = new tracing.InMemorySpanExporter();
  sdk = new NodeSDK({
    autoDetectResources: false,
    spanProcessors: [new tracing.SimpleSpanProcessor(exporter)],
    metricReaders: [],
    logRecordProcessors: [],
  });
  sdk.start();
});
afterEach(async () => {
  await sdk.shutdown();
  endApi();
});

it('a trace of OpenTelemetry goes on in the body of a call, to its end', async () => {
  const { span, headers } = inSpan(() => ({ span: activeSpan()!, headers: currentTrace() }));
  expect(structuredClone(headers)).toEqual({ traceparent: expect.any(String) });
  const body = async () => {
    await Promise.resolve();
    return { ...activeSpan() };
  };
  const { traceId, spanId } = span;
  expect(await runBody('Cats.count', body, headers)).toMatchObject({
    value: { traceId, spanId, isRemote: true },
  });
});

it('no trace is sent outside of spans', () => {
  expect(currentTrace()).toBeUndefined();
});

it('a thread without an SDK runs a body that came with a trace', async () => {
  const headers = inSpan(currentTrace);
  endApi();
  expect(await runBody('Cats.count', () => 5, headers)).toMatchObject({ value: 5 });
  expect(currentTrace()).toBeUndefined();
});
