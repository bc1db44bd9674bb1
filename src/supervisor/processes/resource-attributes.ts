import { hostname } from 'node:os';
import type { WorkerIdentity } from '../../contract/snapshot/index.js';

/** OpenTelemetry's variable for the attributes of a process: `key=value`, separated by commas. */
export const RESOURCE_VARIABLE = 'OTEL_RESOURCE_ATTRIBUTES';

const INSTANCE_ID = 'service.instance.id';

/**
 * The user's attributes, and a `service.instance.id` for the worker. The id is unique among the
 * service's running processes on all machines. Processes with the same id would share their metrics.
 */
export function resourceAttributes(
  { slot, generation }: Pick<WorkerIdentity, 'slot' | 'generation'>,
  given: string = process.env[RESOURCE_VARIABLE] ?? '',
  host: string = hostname(),
): string {
  const attributes = given.split(',').filter((attribute) => attribute.trim() !== '');
  const keys = attributes.map((attribute) => attribute.split('=')[0]!.trim());
  if (keys.includes(INSTANCE_ID)) return given;
  const instance = `${encodeURIComponent(host)}/worker-${slot}/gen-${generation}`;
  return [...attributes, `${INSTANCE_ID}=${instance}`].join(',');
}
