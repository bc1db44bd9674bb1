import { messageOf } from '../errors/text.js';
import { inTime } from './in-time.js';

/** A part of an OpenTelemetry SDK that can be shut down. */
interface Provider {
  /** Exports the remaining data, then ends. */
  shutdown?(): Promise<unknown>;
}

// Version 1 of OpenTelemetry's API packages stores the providers of this thread's SDK under these
// symbols. The code below reads the symbols and imports no package, so that an app without an SDK
// loads nothing.
const API = Symbol.for('opentelemetry.js.api.1');
const LOGS = Symbol.for('io.opentelemetry.js.api.logs');
const LOGS_VERSION = 1;

interface OpenTelemetry {
  readonly trace?: { getDelegate?(): Provider };
  readonly metrics?: Provider;
}

interface Registered {
  readonly [API]?: OpenTelemetry;
  readonly [LOGS]?: (version: number) => Provider;
}

const registered = globalThis as Registered;

/** The variable by which OpenTelemetry's SDK is told not to start. */
const DISABLED_VARIABLE = 'OTEL_SDK_DISABLED';

/**
 * The environment for a thread, with a variable that stops the SDK. Node runs the `--import`
 * modules again in each thread, and a second SDK must not start there. `undefined` if the thread
 * can use the environment of the process: without an SDK, or if the variable is already set.
 */
export function environmentOfThread(
  env: NodeJS.ProcessEnv = process.env,
): NodeJS.ProcessEnv | undefined {
  const { trace, metrics } = registered[API] ?? {};
  const isWithoutSdk = !trace && !metrics && !registered[LOGS];
  if (isWithoutSdk || env[DISABLED_VARIABLE] !== undefined) return undefined;
  return { ...env, [DISABLED_VARIABLE]: 'true' };
}

/**
 * Shuts the SDK of this thread down. The SDK first exports its remaining data.
 *
 * @returns the problem, in words; `undefined` if there was none.
 */
export async function endTelemetry(timeoutMs: number): Promise<string | undefined> {
  const { trace, metrics } = registered[API] ?? {};
  const providers = [trace?.getDelegate?.(), metrics, registered[LOGS]?.(LOGS_VERSION)].filter(
    (provider) => typeof provider?.shutdown === 'function',
  );
  if (providers.length === 0) return undefined;
  const ended = Promise.allSettled(providers.map(async (provider) => provider!.shutdown!())).then(
    (results) => results.find((result) => result.status === 'rejected')?.reason as unknown,
  );
  const problem = await inTime(
    ended,
    timeoutMs,
    () => new Error(`not exported within ${Math.round(timeoutMs)} ms`),
  );
  if (problem === undefined) return undefined;
  return `its last spans, metrics and logs may be lost: ${messageOf(problem)}; look whether the collector of OpenTelemetry answers`;
}
