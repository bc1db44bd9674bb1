import { inspect } from 'node:util';

/** Part of an SDK of OpenTelemetry, as far as its end concerns it. */
interface Provider {
  /** Exports what is left, then ends. */
  shutdown?(): Promise<unknown>;
}

// Where version 1 of OpenTelemetry's API packages keep what an SDK has registered in this thread.
// They are read, not imported: nobody who has no SDK loads anything.
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
 * The environment of a thread that is to start no SDK of its own, although Node runs there again
 * what `--import` names; `undefined` where that of the process will do. Who has set the variable
 * has decided.
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
