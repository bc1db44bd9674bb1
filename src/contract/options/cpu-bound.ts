import * as v from 'valibot';
import { durationMs, flag, optionGroup, type SchemaOf, text, validate } from './checks.js';

/** Options of one `@CpuBound()` method. */
export interface CpuBoundOptions {
  /** Name of the method in metrics and messages: letters, digits and `_ . : -`. Default `Class.method`. */
  readonly name?: string | undefined;
  /** Maximum run time, in ms. A longer call fails with 504, and its thread is replaced. Default `offload.timeoutMs`. */
  readonly timeoutMs?: number | undefined;
  /**
   * Whether a running call is ended, together with its thread, when the client of its request
   * disconnects. A waiting call of that client never runs. Default false.
   */
  readonly abortOnDisconnect?: boolean | undefined;
  /**
   * Name of a queue, 1 to 100 letters, digits and `_ . -`. Any process that consumes this queue, on
   * any machine, runs the calls. Needs `ClusterQueueModule` of `@nestjs-cluster/bullmq`. Default: no
   * queue; a thread of this process runs the calls.
   */
  readonly queue?: string | undefined;
}

const cpuBoundOptions = optionGroup({
  name: v.optional(text(/^[\w.:-]{1,100}$/, "1 to 100 letters, digits, '_', '.', ':' or '-'")),
  timeoutMs: v.optional(durationMs(1)),
  abortOnDisconnect: v.optional(flag),
  // It becomes part of Redis keys.
  queue: v.optional(text(/^[\w.-]{1,100}$/, "1 to 100 letters, digits, '_', '.' or '-'")),
} satisfies SchemaOf<CpuBoundOptions>);

/**
 * Checks the options of `@CpuBound()`.
 *
 * @param subject the method, for the message.
 * @throws ClusterConfigurationError that names each key, the value seen and what is allowed.
 */
export function resolveCpuBoundOptions(input: unknown, subject: string): CpuBoundOptions {
  return validate(cpuBoundOptions, input, `options for @CpuBound() on ${subject}`);
}
