import type { Telemetry } from 'bullmq';
import { isMissing } from '../../contract/options/module.js';
import { hasTracer } from '../../contract/process/telemetry.js';
import type { ResolvedQueueOptions } from './queue-options.js';

/**
 * Returns the given telemetry for BullMQ. If none was given, returns a `BullMQOtel` if the package
 * bullmq-otel is installed and an OpenTelemetry SDK runs in this thread.
 */
export async function queueTelemetry(
  given: ResolvedQueueOptions['telemetry'],
): Promise<Telemetry | undefined> {
  if (given !== undefined || !hasTracer()) return given || undefined;
  try {
    const { BullMQOtel } = await import('bullmq-otel');
    return new BullMQOtel();
  } catch (error) {
    if (!isMissing('bullmq-otel', error)) throw error;
    return undefined;
  }
}
