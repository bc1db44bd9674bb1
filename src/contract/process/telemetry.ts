import { inspect } from 'node:util';

/** A part of an OpenTelemetry SDK that can be shut down. */
interface Provider {
  /** Exports what is left, then ends. */
  shutdown?(): Promise<unknown>;
}

// Version 1 of OpenTelemetry's API packages keep the providers of an SDK in this thread under these
// symbols. They are read, not imported, so that an app without an SDK loads nothing.
const API = Symbol.for('opentelemetry.js.api.1');
const LOGS = Symbol.for('io.opentelemetry.js.api.logs');
const LOGS_VERSION = 1;

interface Registered {
  readonly [API]?: {
    readonly trace?: { getDelegate?(): Provider };
    readonly metrics?: Provider;
  };
  readonly [LOGS]?: (version: number) => Provider;
}

const registered = globalThis as Registered;

/** The variable by which OpenTelemetry's SDK is told not to start. */
const DISABLED_VARIABLE = 'OTEL_SDK_DISABLED';

/** Whether an SDK has been started in this thread. */
export function hasTelemetry(): boolean {
  const { trace, metrics } = registered[API] ?? {};
  return [trace, metrics, registered[LOGS]].some((each) => each !== undefined);
}

/** Whether somebody collects the spans of this thread. */
export function hasTracer(): boolean {
  return registered[API]?.trace !== undefined;
}

/**
 * The environment of a thread that must not start its own SDK, although Node runs the `--import`
 * modules there again; `undefined` if the thread can use the environment of the process. A variable
 * that is already set is left as it is.
 */
export function environmentOfThread(
  env: NodeJS.ProcessEnv = process.env,
): NodeJS.ProcessEnv | undefined {
  if (!hasTelemetry() || env[DISABLED_VARIABLE] !== undefined) return undefined;
  return { ...env, [DISABLED_VARIABLE]: 'true' };
}

/**
 * Ends the SDK of this thread: it exports what it still has.
 *
 * @returns what went wrong, in words.
 */
export async function endTelemetry(timeoutMs: number): Promise<string | undefined> {
  const providers = [
    registered[API]?.trace?.getDelegate?.(),
    registered[API]?.metrics,
    registered[LOGS]?.(LOGS_VERSION),
  ].filter((provider) => typeof provider?.shutdown === 'function');
  if (providers.length === 0) return undefined;
  let timer: NodeJS.Timeout | undefined;
  const overdue = new Promise<Error>((resolve) => {
    const error = new Error(`nobody took them within ${Math.round(timeoutMs)} ms`);
    timer = setTimeout(resolve, timeoutMs, error);
  });
  const ended = Promise.allSettled(providers.map(async (provider) => provider!.shutdown!())).then(
    (results) => results.find((result) => result.status === 'rejected')?.reason as unknown,
  );
  const problem = await Promise.race([ended, overdue]);
  clearTimeout(timer);
  if (problem === undefined) return undefined;
  const reason = problem instanceof Error ? problem.message : inspect(problem);
  return `its last spans, metrics and logs may be lost: ${reason}; look whether the collector of OpenTelemetry answers`;
}
