import { deserialize, serialize } from 'node:v8';
import { ClusterUncloneableError } from 'nestjs-cluster';
import type { TaskError } from 'nestjs-cluster/extension';

/** The data of a job in Redis. */
export interface JobData {
  /** {@link Given}, encoded. */
  readonly given: string;
  /** Whether a caller waits for the result. */
  readonly call: boolean;
}

/** The arguments of a job, and the caller's trace. */
export interface Given {
  readonly args: readonly unknown[];
  readonly trace: unknown;
}

/** The result of a job, or the error that its method threw. */
export type Outcome = { readonly value: unknown } | { readonly error: TaskError };

/**
 * Encodes a value for Redis by V8's structured clone: maps, dates, buffers and bigints stay what they
 * are. A value is only read by the version of V8 that wrote it, or a newer one.
 *
 * @throws ClusterUncloneableError for a function and anything else that structured clone refuses.
 */
export function encode(value: Given | Outcome, name: string): string {
  try {
    return serialize(value).toString('base64');
  } catch (error) {
    throw new ClusterUncloneableError(
      `an argument or the result of ${name} cannot be sent through a queue: ${(error as Error).message}; use plain data`,
    );
  }
}

/** @throws Error for a text that {@link encode} has not made. */
export function decode(text: string): unknown {
  return deserialize(Buffer.from(text, 'base64'));
}
