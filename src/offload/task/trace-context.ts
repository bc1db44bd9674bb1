/** OpenTelemetry's API version 1 keeps this thread's SDK under this key. See telemetry.ts. */
const API = Symbol.for('opentelemetry.js.api.1');

interface Api {
  readonly context?: {
    active(): unknown;
    with<R>(context: unknown, body: () => R): R;
  };
  readonly propagation?: {
    inject(context: unknown, carrier: object, setter: object): void;
    extract(context: unknown, carrier: object, getter: object): unknown;
  };
}

const openTelemetry = (): Api => (globalThis as { readonly [API]?: Api })[API] ?? {};

/** The headers of a trace, such as `traceparent`. The propagator of the app's SDK defines them. */
export type TraceHeaders = Readonly<Record<string, string>>;

const WRITE = {
  set: (headers: Record<string, string>, name: string, value: string) =>
    void (headers[name] = value),
};
const READ = {
  get: (headers: TraceHeaders, name: string) => headers[name],
  keys: (headers: TraceHeaders) => Object.keys(headers),
};

/** OpenTelemetry's active trace. `undefined` without one, or without an SDK in this thread. */
export function currentTrace(): TraceHeaders | undefined {
  const { context, propagation } = openTelemetry();
  if (context === undefined || propagation === undefined) return undefined;
  const headers: TraceHeaders = {};
  propagation.inject(context.active(), headers, WRITE);
  return Object.keys(headers).length === 0 ? undefined : headers;
}

/** Runs `body` in the trace of another thread or process. */
export function runInTrace<R>(headers: TraceHeaders | undefined, body: () => R): R {
  const { context, propagation } = openTelemetry();
  if (headers === undefined || context === undefined || propagation === undefined) return body();
  return context.with(propagation.extract(context.active(), headers, READ), body);
}
