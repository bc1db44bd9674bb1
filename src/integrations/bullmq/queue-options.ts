import type { RedisOptions } from 'ioredis';
import * as v from 'valibot';
import { ClusterConfigurationError } from '../../contract/errors/index.js';
import { queueNameSchema } from '../../contract/options/cpu-bound-options.js';
import {
  durationMs,
  integer,
  oneOf,
  option,
  optionGroup,
  validate,
} from '../../contract/options/check/validate.js';

/** The address of Redis: options of ioredis, or `{ url }`. */
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
  /** Maximum number of jobs of each queue that run in this process. Default: the number of its threads. */
  readonly concurrency?: number | undefined;
  /** The prefix of all keys in Redis. Default `'bull'`, as in BullMQ. */
  readonly prefix?: string | undefined;
  /** Maximum time that a call waits for its result, in ms. After that it fails with 504. Default 30 000. */
  readonly callTimeoutMs?: number | undefined;
  /** While Redis is away, calls either fail with 503 or run in this process. Default `'reject'`. */
  readonly onUnavailable?: 'reject' | 'local' | undefined;
  /** Maximum size of the arguments, or of the result, in bytes of JSON. Default 1 MiB. */
  readonly maxPayloadBytes?: number | undefined;
  /** How long a job stays locked after its consumer was killed, in ms. Default 10 000. */
  readonly lockMs?: number | undefined;
  /**
   * The maximum time from the expiry of a killed consumer's lock until another consumer takes the
   * job, in ms. Default 5 000.
   */
  readonly stalledIntervalMs?: number | undefined;
  /** The maximum number of consumers that a job may lose. If it loses one more, the job fails. Default 3. */
  readonly maxStalledCount?: number | undefined;
  /** How long Redis keeps an enqueued job after its end, in ms. Default 1 hour. */
  readonly keepMs?: number | undefined;
}

const EXPECTED_CONSUME = 'true, false, or a list of names of queues';
const EXPECTED_PREFIX = "1 to 100 letters, digits and '_', '.', ':', '-', '{' or '}'";
const HOUR_MS = 3_600_000;

const consume = v.union([v.boolean(), v.array(queueNameSchema)], EXPECTED_CONSUME);

const schema = optionGroup({
  connection: v.custom<QueueConnection>(
    (value) => typeof value === 'object' && value !== null && !('duplicate' in value),
    'options of ioredis, such as { host, port } or { url }',
  ),
  consume: option(consume, true),
  concurrency: v.optional(integer(1, 1_000)),
  prefix: option(
    v.pipe(v.string(EXPECTED_PREFIX), v.regex(/^[\w.:{}-]{1,100}$/, EXPECTED_PREFIX)),
    'bull',
  ),
  callTimeoutMs: option(durationMs(1), 30_000),
  onUnavailable: option(oneOf(['reject', 'local']), 'reject'),
  maxPayloadBytes: option(integer(1_024, 512 * 1_024 * 1_024), 1_024 * 1_024),
  lockMs: option(durationMs(100), 10_000),
  stalledIntervalMs: option(durationMs(100), 5_000),
  maxStalledCount: option(integer(0, 1_000), 3),
  keepMs: option(durationMs(), HOUR_MS),
});

export type ResolvedQueueOptions = v.InferOutput<typeof schema>;

export const QUEUE_OPTIONS = Symbol('nestjs-cluster.queue-options');

/**
 * Checks the options, and fills in the defaults.
 *
 * @throws ClusterConfigurationError that names each key, the value seen and what is allowed.
 */
export function resolveQueueOptions(
  input: ClusterQueueOptions,
  env: NodeJS.ProcessEnv = process.env,
): ResolvedQueueOptions {
  const resolved = validate(schema, input, 'options of ClusterQueueModule');
  const text = env['CLUSTER_CONSUME'];
  if (!text) return resolved;
  const given = text === 'true' || (text === 'false' ? false : text.split(','));
  const { CLUSTER_CONSUME } = validate(
    v.object({ CLUSTER_CONSUME: consume }),
    { CLUSTER_CONSUME: given },
    'environment',
  );
  return { ...resolved, consume: CLUSTER_CONSUME };
}

/**
 * The queues of the app that this process consumes.
 *
 * @throws ClusterConfigurationError for a queue that no method names.
 */
export function consumedQueues(
  { consume }: Pick<ResolvedQueueOptions, 'consume'>,
  queues: readonly string[],
): readonly string[] {
  if (consume === true) return queues;
  const chosen = consume === false ? [] : consume;
  const unknown = chosen.filter((name) => !queues.includes(name));
  if (unknown.length > 0) {
    throw new ClusterConfigurationError(
      `this process is to consume ${unknown.join(', ')}, and no @CpuBound() method of the app has such a queue (there is ${queues.join(', ') || 'none'}); correct consume or CLUSTER_CONSUME`,
    );
  }
  return queues.filter((name) => chosen.includes(name));
}
