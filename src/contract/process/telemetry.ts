import { messageOf } from '../errors/error-report.js';
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

/**
 * Shuts down this thread's SDK. The SDK first exports its remaining data.
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
    () => new Error(`the export took longer than ${Math.round(timeoutMs)} ms`),
  );
  if (problem === undefined) return undefined;
  return `its last spans, metrics and logs may be lost: ${messageOf(problem)}; check that the OpenTelemetry collector answers`;
}
