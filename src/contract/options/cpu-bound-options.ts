import * as v from 'valibot';
import { ClusterConfigurationError } from '../errors/index.js';
import { durationMs, flag, optionGroup, validate } from './check/validate.js';

/** Options of one `@CpuBound()` method. */
export interface CpuBoundOptions {
  /** Its name in metrics and messages: letters, digits and `_ . : -`. Default `Class.method`. */
  readonly name?: string | undefined;
  /** Longest run, then 504 and a fresh thread, in ms. Default `offload.timeoutMs`. */
  readonly timeoutMs?: number | undefined;
  /** Longest wait for a thread, then 503, in ms. Default `offload.queueTimeoutMs`. */
  readonly queueTimeoutMs?: number | undefined;
  /**
   * Calls with equal arguments that are waiting or running are computed once, and each gets the
   * result. Only for methods that give everybody the same answer. Default false.
   */
  readonly coalesce?: boolean | undefined;
  /**
   * A call that a request has caused is cancelled or ended when the client of that request goes
   * away. `false` for results that outlive their request: a cache, a shared promise, a timer that a
   * request has started. Default true.
   */
  readonly abortOnDisconnect?: boolean | undefined;
  /**
   * Any process that consumes this queue, on any machine, runs the calls: needs
   * `ClusterQueueModule` of `nestjs-cluster/bullmq`. 1 to 100 letters, digits and `_ . -`. Default:
   * a thread of this process runs them.
   */
  readonly queue?: string | undefined;
}

const EXPECTED_NAME = "1 to 100 letters, digits and '_', '.', ':' or '-'";

const EXPECTED_QUEUE = "1 to 100 letters, digits and '_', '.' or '-'";

/** The name of a queue: part of keys in Redis. */
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
  queue: v.optional(queueNameSchema),
});

/**
 * Checks the options of a decorator.
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
