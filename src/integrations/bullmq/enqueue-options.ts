import { QueueKeys } from 'bullmq';
import * as v from 'valibot';
import {
  durationMs,
  integer,
  option,
  optionGroup,
  validate,
} from '../../contract/options/check/validate.js';

/** Options of `ClusterQueues.enqueue()`. */
export interface EnqueueOptions {
  /**
   * The id of the job. Enqueuing with the same id again adds no second job while Redis remembers
   * the first job. An id has 1 to 100 letters, digits and `_ . -`, but not digits alone, and is not a
   * name that BullMQ uses itself, such as `delayed`. Default: a new id.
   */
  readonly id?: string | undefined;
  /** The minimum wait before the job runs, in ms. Default 0. */
  readonly delay?: number | undefined;
  /** The maximum number of runs of a job whose method throws. After the last run the job fails. Default 3. */
  readonly attempts?: number | undefined;
}

const EXPECTED_ID =
  "1 to 100 letters, digits and '_', '.' or '-', not a number alone, nor a key of BullMQ such as 'delayed'";

/**
 * Names that cannot be ids. In Redis both jobs and the queue's lists have keys of the form
 * `<prefix>:<queue>:<name>`. A job with the id `delayed` would replace the list `delayed`, and no
 * job could be delayed or given back any more.
 */
const KEYS_OF_A_QUEUE: ReadonlySet<string> = new Set(Object.keys(new QueueKeys().getKeys('')));

const isFree = (id: string) => !KEYS_OF_A_QUEUE.has(id);

/** The form of a public id: the queue, a slash and the id in the queue. Ids of calls have this form too. */
const SOME_ID = /^([^/]+)\/([\w.-]{1,200})$/;

const schema = optionGroup({
  // Not a number, because BullMQ numbers jobs itself. No colons, because colons separate BullMQ's keys.
  id: v.optional(
    v.pipe(
      v.string(EXPECTED_ID),
      v.regex(/^(?!\d+$)[\w.-]{1,100}$/, EXPECTED_ID),
      v.check(isFree, EXPECTED_ID),
    ),
  ),
  delay: option(durationMs(), 0),
  attempts: option(integer(1, 1_000), 3),
});

/** @throws ClusterConfigurationError that names each key, the value seen and what is allowed. */
export function checkEnqueueOptions(input: EnqueueOptions | undefined) {
  return validate(schema, input, 'options of enqueue()');
}

/** @returns the job's queue and its id in the queue, or `undefined` if the string is not an id. */
export function locate(id: string): { readonly queue: string; readonly jobId: string } | undefined {
  const [, queue = '', jobId = ''] = SOME_ID.exec(String(id)) ?? [];
  return queue !== '' && isFree(jobId) ? { queue, jobId } : undefined;
}
