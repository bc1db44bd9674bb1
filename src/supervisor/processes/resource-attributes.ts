import { hostname } from 'node:os';
import type { WorkerIdentity } from '../../contract/snapshot/index.js';

/** What every SDK of OpenTelemetry describes its process by: `key=value`, separated by commas. */
export const RESOURCE_VARIABLE = 'OTEL_RESOURCE_ATTRIBUTES';

const INSTANCE_ID = 'service.instance.id';

/**
 * What the user has set, and a name for the worker. The name has to be another than that of any
 * process of the service at the same time, also on other machines: else their metrics are one.
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
