import { currentTracing, setTracing, type Tracing } from '../task/trace-context.js';
import { isMissing } from '../../contract/options/module.js';
import { hasTracer } from '../../contract/process/telemetry.js';

const API = '@opentelemetry/api';

/** Traces `@CpuBound()` calls that are made or run in this thread, if an OpenTelemetry SDK was started in the thread. */
export async function startTracing(
  warn: (message: string) => void,
  load = () => import('@opentelemetry/api'),
): Promise<Tracing | undefined> {
  const current = currentTracing();
  if (current !== undefined || !hasTracer()) return current;
  try {
    const api = await load();
    const { OpenTelemetry } = await import('./open-telemetry.js');
    setTracing(new OpenTelemetry(api));
  } catch (error) {
    // Only a warning: an operator may have added the SDK from outside, and the app can serve without the API.
    if (!isMissing(API, error)) throw error;
    warn(
      `@CpuBound() calls have no spans: an SDK of OpenTelemetry runs here, and ${API} is not installed where nestjs-cluster finds it; run npm install ${API}`,
    );
  }
  return currentTracing();
}
