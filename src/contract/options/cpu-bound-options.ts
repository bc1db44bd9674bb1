import * as v from 'valibot';
import { ClusterConfigurationError } from '../errors/index.js';
import { durationMs, flag, oneOf, optionGroup, validate } from './check/validate.js';

/** Options of one `@CpuBound()` method. */
export interface CpuBoundOptions {
  /** Name of the method in metrics and messages: letters, digits and `_ . : -`. Default `Class.method`. */
  readonly name?: string | undefined;
  /** Maximum run time, in ms. A longer call fails with 504, and its thread is replaced. Default `offload.timeoutMs`. */
  readonly timeoutMs?: number | undefined;
  /** Maximum wait for a thread, in ms. Beyond it, the call fails with 503. Default `offload.queueTimeoutMs`. */
  readonly queueTimeoutMs?: number | undefined;
  /**
   * Whether calls that wait or run at the same time and have equal arguments share one computation
   * and its result. Only for methods that give every caller the same answer. Default false.
   */
  readonly coalesce?: boolean | undefined;
  /**
   * Whether a call is cancelled or stopped when the client of its request disconnects. Use `false`
   * for results that outlive their request: a cache, a shared promise, a timer that a request has
   * started. Default true.
   */
  readonly abortOnDisconnect?: boolean | undefined;
  /**
   * `'thread'`: all calls run in threads. `'auto'`: short calls run on the event loop, on the app's
   * own instance, and the others in threads. A call is short if it takes less than 1 ms, and at most
   * ten times as long as the way to a thread and back. Each worker learns this from the times of the
   * calls. Default `'thread'`.
   */
  readonly mode?: 'thread' | 'auto' | undefined;
  /**
   * Name of a queue, 1 to 100 letters, digits and `_ . -`. Any process that consumes this queue, on
   * any machine, runs the calls. Needs `ClusterQueueModule` of `nestjs-cluster/bullmq`. Default: no
   * queue; a thread of this process runs the calls.
   */
  readonly queue?: string | undefined;
}

const EXPECTED_NAME = "1 to 100 letters, digits and '_', '.', ':' or '-'";

const EXPECTED_QUEUE = "1 to 100 letters, digits and '_', '.' or '-'";

/** The name of a queue. It becomes a part of keys in Redis. */
export const queueNameSchema = v.pipe(
  v.string(EXPECTED_QUEUE),
  v.regex(/^[\w.-]{1,100}$/, EXPECTED_QUEUE),
);

const cpuBoundSchema = optionGroup({
  name: v.optional(v.pipe(v.string(EXPECTED_NAME), v.regex(/^[\w.:-]{1,100}$/, EXPECTED_NAME))),
  timeoutMs: v.optional(durationMs(1)),
  queueTimeoutMs: v.optional(durationMs(0)),
  coalesce: v.optional(flag),
  abortOnDisconnect: v.optional(flag),
  mode: v.optional(oneOf(['thread', 'auto'])),
  queue: v.optional(queueNameSchema),
});

/**
 * Checks the options of `@CpuBound()`.
 *
 * @param subject the method, for the message.
 * @throws ClusterConfigurationError that names each key, the value seen and what is allowed.
 */
export function resolveCpuBoundOptions(input: unknown, subject: string): CpuBoundOptions {
  const options = validate(cpuBoundSchema, input, `options of @CpuBound() on ${subject}`);
  if (options.queue !== undefined && options.coalesce) {
    throw new ClusterConfigurationError(
      `${subject} has queue: "${options.queue}" and coalesce: true; calls of a queue go to many machines, and are not computed together: leave one out`,
    );
  }
  return options;
}
