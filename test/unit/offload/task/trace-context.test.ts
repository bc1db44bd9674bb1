import { context, trace } from '@opentelemetry/api';
import { NodeSDK, tracing } from '@opentelemetry/sdk-node';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { captureContexts, runInContexts } from '../../../../src/offload/task/carry-context.js';

const activeSpan = () => trace.getSpanContext(context.active());
const inSpan = <R>(body: () => R): R => trace.getTracer('app').startActiveSpan('request', body);

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
  Reflect.deleteProperty(globalThis, Symbol.for('opentelemetry.js.api.1'));
});

it('a trace of OpenTelemetry goes on where its call runs', () => {
  const { made, contexts } = inSpan(() => ({ made: activeSpan(), contexts: captureContexts() }));
  const carried = structuredClone(contexts);
  expect(carried).toEqual({ 'nestjs-cluster.trace': { traceparent: expect.any(String) } });
  expect(runInContexts(carried, activeSpan)).toMatchObject({
    traceId: made!.traceId,
    spanId: made!.spanId,
    isRemote: true,
  });
});

it('nothing is carried outside any span', () => {
  expect(captureContexts()).toBeUndefined();
});

it('a thread without an SDK just runs what has come with a trace', () => {
  const contexts = inSpan(captureContexts);
  Reflect.deleteProperty(globalThis, Symbol.for('opentelemetry.js.api.1'));
  expect(runInContexts(contexts, () => 5)).toBe(5);
  expect(captureContexts()).toBeUndefined();
});
