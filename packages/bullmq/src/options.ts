import type { RedisOptions } from 'ioredis';
import { ClusterConfigurationError } from 'nestjs-cluster/bootstrap';
import * as v from 'valibot';

/** The address of Redis: ioredis options, or `{ url }`. */
export interface QueueConnection extends RedisOptions {
  readonly url?: string;
}

/** Options of `ClusterQueueModule.forRoot()`. */
export interface ClusterQueueOptions {
  readonly connection: QueueConnection;
  /**
   * The queues that this process consumes: `true` for the queues of all its methods, `false` for no
   * queue, or a list of names. The environment variable `CLUSTER_CONSUME` (`true`, `false`, or names
   * separated by commas) overrides this option. Default `true`.
   */
  readonly consume?: boolean | readonly string[] | undefined;
  /** Maximum number of concurrent jobs per queue in this process. Default: its number of threads. */
  readonly concurrency?: number | undefined;
  /** The prefix of all keys in Redis. Default `'bull'`, as in BullMQ. */
  readonly prefix?: string | undefined;
  /** Maximum time that a call waits for its result, in ms. After that it fails with 504. Default 30 000. */
  readonly callTimeoutMs?: number | undefined;
  /** While Redis is unavailable, calls either fail with 503 or run in this process. Default `'reject'`. */
  readonly onUnavailable?: 'reject' | 'local' | undefined;
}

const MAX_TIMER_MS = 2 ** 31 - 1;

const whole = (min: number, max: number) => {
  const expected = `a whole number from ${min} to ${max}`;
  return v.pipe(
    v.number(expected),
    v.integer(expected),
    v.minValue(min, expected),
    v.maxValue(max, expected),
  );
};
const queueName = v.pipe(v.string(), v.regex(/^[\w.-]{1,100}$/));
const consume = v.union([v.boolean(), v.array(queueName)], 'true, false, or a list of queue names');

const schema = v.strictObject({
  connection: v.custom<QueueConnection>(
    (value) => typeof value === 'object' && value !== null && !('duplicate' in value),
    'ioredis options, such as { host, port } or { url }',
  ),
  consume: v.optional(consume, true),
  concurrency: v.optional(whole(1, 1_000)),
  prefix: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^[\w.:{}-]{1,100}$/, "1 to 100 letters, digits, '_', '.', ':', '-', '{' or '}'"),
    ),
    'bull',
  ),
  callTimeoutMs: v.optional(whole(1, MAX_TIMER_MS), 30_000),
  onUnavailable: v.optional(v.picklist(['reject', 'local'], "'reject' or 'local'"), 'reject'),
});

export type ResolvedQueueOptions = v.InferOutput<typeof schema>;

export const QUEUE_OPTIONS = Symbol('nestjs-cluster.queue-options');

/** Checks the options, and fills in the defaults. @throws ClusterConfigurationError */
export function resolveQueueOptions(
  input: ClusterQueueOptions,
  env: NodeJS.ProcessEnv = process.env,
): ResolvedQueueOptions {
  const resolved = check(schema, input, 'options of ClusterQueueModule');
  const text = env['CLUSTER_CONSUME'];
  if (!text) return resolved;
  const given = text === 'true' || (text === 'false' ? false : text.split(','));
  return { ...resolved, consume: check(consume, given, 'CLUSTER_CONSUME') };
}

/** @throws ClusterConfigurationError with each wrong key and the allowed values, not the given ones: they may be passwords. */
function check<const T extends v.GenericSchema>(
  schema: T,
  input: unknown,
  subject: string,
): v.InferOutput<T> {
  const result = v.safeParse(schema, input);
  if (result.success) return result.output;
  const problems = result.issues.map(
    (issue) => `${v.getDotPath(issue) ?? subject}: ${issue.message}`,
  );
  throw new ClusterConfigurationError(`invalid ${subject}: expected ${problems.join(' | ')}`);
}

/**
 * The app's queues that this process consumes.
 *
 * @throws ClusterConfigurationError for a queue that no method names.
 */
export function consumedQueues(
  { consume: chosen }: Pick<ResolvedQueueOptions, 'consume'>,
  queues: readonly string[],
): readonly string[] {
  if (typeof chosen === 'boolean') return chosen ? queues : [];
  const unknown = chosen.filter((name) => !queues.includes(name));
  if (unknown.length === 0) return queues.filter((name) => chosen.includes(name));
  throw new ClusterConfigurationError(
    `cannot consume ${unknown.join(', ')}: no @CpuBound() method in the app uses this queue (known: ${queues.join(', ') || 'none'}); fix consume or CLUSTER_CONSUME`,
  );
}
