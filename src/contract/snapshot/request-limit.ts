/** How willingly a worker that has too many requests refuses one: `critical` never, `sheddable` first. */
export type RequestPriority = (typeof PRIORITIES)[number];

export const PRIORITIES = ['critical', 'normal', 'sheddable'] as const;

/**
 * The metadata key of a handler's priority. A registered symbol, so that two copies of this package
 * in one process use the same key.
 */
export const PRIORITY = Symbol.for('nestjs-cluster.priority');

/** The limit of a worker and what it has refused. */
export interface LimitReadings {
  /** How many requests the worker handles at once, at most. `Infinity` while it refuses none. */
  limit: number;
  /** The number of refused requests, by priority. */
  readonly shed: Record<Exclude<RequestPriority, 'critical'>, number>;
}
