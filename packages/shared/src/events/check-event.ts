import * as v from 'valibot';
import { ClusterConfigurationError } from '../../../../src/contract/errors/cluster.errors.js';
import {
  durationMs,
  integer,
  MAX_WORKERS,
  option,
  optionGroup,
  validate,
} from '../../../../src/contract/options/check/validate.js';
import { currentLink } from '../../../../src/contract/snapshot/current-link.js';
import { encodePayload } from '../client/encode-payload.js';
import { MAX_TEXT_LENGTH } from '../wire/limits.js';

/** The receivers of an event: all workers, all but the sender, any one worker, or the worker of a slot. */
export type EventReceivers = 'all' | 'others' | 'one' | number;

const slotSchema = integer(0, MAX_WORKERS - 1);

const receivers = <const T extends string>(...names: T[]) =>
  v.custom<T | number>(
    (to) => names.includes(to as T) || v.is(slotSchema, to),
    `${names.map((each) => `'${each}'`).join(', ')} or the number of a slot`,
  );

export const receiversSchema = receivers('all', 'others', 'one');

export const requestSchema = optionGroup({
  to: option(receivers('one'), 'one'),
  deadlineMs: option(durationMs(), 5_000),
});

const NAME = `1 to ${MAX_TEXT_LENGTH} characters; put what varies into the payload`;
const nameSchema = v.pipe(v.string(NAME), v.nonEmpty(NAME), v.maxLength(MAX_TEXT_LENGTH, NAME));

/** @throws ClusterConfigurationError for a wrong name, ClusterUncloneableError for the payload. */
export function encodeEvent(name: string, payload: unknown): Buffer {
  validate(nameSchema, name, 'name of an event');
  return encodePayload(`the payload of the event '${name}'`, payload);
}

/** Checks the slot if no worker got the event. @throws ClusterConfigurationError for a slot beyond the last. */
export async function checkSlotOf(to: EventReceivers): Promise<void> {
  const link = currentLink();
  if (typeof to !== 'number' || link === undefined) return;
  const { workers } = (await link.snapshot()).snapshot;
  const slots = [...new Set(workers.map(({ slot }) => slot))];
  if (slots.includes(to)) return;
  throw new ClusterConfigurationError(
    `ClusterEvents was to reach slot ${to}, which does not exist: slots are ${slots.join(', ')}`,
  );
}
