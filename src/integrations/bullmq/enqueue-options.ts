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
   * Makes it a single job, however often it is enqueued, as long as Redis remembers it. 1 to 100
   * letters, digits and `_ . -`, not a number alone, nor a name that BullMQ uses itself, such as
   * `delayed`. Default: a new id.
   */
  readonly id?: string | undefined;
  /** The shortest wait before it runs, in ms. Default 0. */
  readonly delay?: number | undefined;
  /** How often it runs at most, if it throws. Default 3. */
  readonly attempts?: number | undefined;
}

const EXPECTED_ID =
  "1 to 100 letters, digits and '_', '.' or '-', not a number alone, nor a key of BullMQ such as 'delayed'";

/**
 * A job has the key `<prefix>:<queue>:<id>`, and so have the lists of the queue. A job with the id
 * `delayed` would replace that list, and no job could be delayed or given back any more.
 */
const KEYS_OF_A_QUEUE: ReadonlySet<string> = new Set(Object.keys(new QueueKeys().getKeys('')));

const isFree = (id: string) => !KEYS_OF_A_QUEUE.has(id);

/** The public id of any job, also of a call. */
const SOME_ID = /^([^/]+)\/([\w.-]{1,200})$/;

const schema = optionGroup({
  // BullMQ gives numbers itself, and its keys have colons.
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

/** @returns the queue of a job and its id there; `undefined` for a string that is not the id of a job. */
export function locate(id: string): { readonly queue: string; readonly jobId: string } | undefined {
  const [, queue = '', jobId = ''] = SOME_ID.exec(String(id)) ?? [];
  return queue !== '' && isFree(jobId) ? { queue, jobId } : undefined;
}
