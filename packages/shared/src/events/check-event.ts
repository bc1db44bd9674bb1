import * as v from 'valibot';
import { ClusterConfigurationError } from 'nestjs-cluster/bootstrap';
import { durationMs, integer, validate } from '../options.js';
import { extension } from 'nestjs-cluster/extension';
import { encodePayload } from '../client/encode-payload.js';
import { MAX_TEXT_LENGTH } from '../wire/limits.js';

/** The receivers of an event: all workers, all but the sender, any one worker, or the worker of a slot. */
export type EventReceivers = 'all' | 'others' | 'one' | number;

/** nestjs-cluster refuses more workers. */
const MAX_WORKERS = 256;

const slotSchema = integer(0, MAX_WORKERS - 1);

const receivers = <const T extends string>(...names: T[]) =>
  v.custom<T | number>(
    (to) => names.includes(to as T) || v.is(slotSchema, to),
    `${names.map((each) => `'${each}'`).join(', ')} or the number of a slot`,
  );

export const receiversSchema = receivers('all', 'others', 'one');

export const requestSchema = v.strictObject({
  to: v.optional(receivers('one'), 'one'),
  deadlineMs: v.optional(durationMs(), 5_000),
});

const NAME = `1 to ${MAX_TEXT_LENGTH} characters; put what varies into the payload`;
const nameSchema = v.pipe(v.string(NAME), v.nonEmpty(NAME), v.maxLength(MAX_TEXT_LENGTH, NAME));

/** @throws ClusterConfigurationError for a wrong name, ClusterUncloneableError for the payload. */
export function encodeEvent(name: string, payload: unknown): Buffer {
  validate(nameSchema, name, 'name of an event');
  return encodePayload(`the payload of the event '${name}'`, payload);
}

/** Checks the slot if no worker got the event. @throws ClusterConfigurationError for a slot beyond the last. */
export function checkSlotOf(to: EventReceivers): void {
  const link = extension();
  if (typeof to !== 'number' || link === undefined) return;
  if (to < link.workers) return;
  throw new ClusterConfigurationError(
    `ClusterEvents cannot reach slot ${to}: the last slot is ${link.workers - 1}`,
  );
}
