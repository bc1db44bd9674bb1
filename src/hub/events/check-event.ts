import { ClusterConfigurationError } from '../../contract/errors/cluster.errors.js';
import { MAX_WORKERS } from '../../contract/options/check/validate.js';
import { currentLink } from '../../contract/snapshot/current-link.js';
import { encodePayload } from '../client/encode-payload.js';
import { MAX_TEXT_LENGTH } from '../wire/limits.js';

/** The receivers of an event: all workers, all others, any one worker, or the worker of a slot. */
export type EventReceivers = 'all' | 'others' | 'one' | number;

/** The names that each method takes. */
const RECEIVERS = { 'emit()': ['all', 'others', 'one'], 'request()': ['one'] };

/**
 * @returns the encoded payload.
 * @throws ClusterConfigurationError, or ClusterUncloneableError for a wrong payload.
 */
export function checkEvent(
  method: keyof typeof RECEIVERS,
  name: string,
  payload: unknown,
  to: EventReceivers,
): Buffer {
  if (typeof name !== 'string' || name.length === 0 || name.length > MAX_TEXT_LENGTH) {
    const seen = typeof name === 'string' ? `${name.length} characters` : typeof name;
    throw new ClusterConfigurationError(
      `the name of an event for ${method} of ClusterEvents is a string of 1 to ${MAX_TEXT_LENGTH} characters, not ${seen}: put what varies into the payload`,
    );
  }
  const named = RECEIVERS[method];
  const isSlot = Number.isInteger(to) && (to as number) >= 0 && (to as number) < MAX_WORKERS;
  if (!isSlot && !named.includes(to as string)) {
    throw new ClusterConfigurationError(
      `${method} of ClusterEvents sends to ${named.map((each) => `'${each}'`).join(', ')} or the number of a slot, not to ${JSON.stringify(to) ?? typeof to}`,
    );
  }
  return encodePayload(`the payload of the event '${name}'`, payload);
}

/** Called only if nobody got the event. @throws ClusterConfigurationError for a slot beyond the last. */
export async function checkSlotOf(to: EventReceivers): Promise<void> {
  const link = currentLink();
  if (typeof to !== 'number' || link === undefined) return;
  const { desired } = (await link.snapshot()).snapshot;
  if (to < desired) return;
  throw new ClusterConfigurationError(
    `ClusterEvents was to reach slot ${to}, which does not exist: slots are 0 to ${desired - 1}`,
  );
}
