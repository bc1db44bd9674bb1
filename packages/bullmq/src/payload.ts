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
 * Encodes a value for Redis with V8's structured clone, which preserves maps, dates, buffers and
 * bigints. Only the same or a newer version of V8 can read the value.
 *
 * @throws ClusterUncloneableError for a function or another value that cannot be cloned.
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

/** @throws Error if the text is not from {@link encode}. */
export function decode(text: string): unknown {
  return deserialize(Buffer.from(text, 'base64'));
}
