import * as v from 'valibot';
import { memoryBytes } from '../machine.js';
import { integer, text, validate } from '../options.js';

/** The maximum size and the name of a cache that all workers share. */
export interface ClusterCacheOptions {
  /**
   * The maximum size of all keys and values: at least 64 KiB, and less than the memory of the
   * machine or the container. Beyond it, the least recently used values are removed. Default: 64
   * MiB.
   */
  readonly maxBytes?: number | undefined;
  /**
   * The cache's name, 1 to 256 characters. Caches with the same name share their values. Default:
   * `default`; for a `ClusterCache`, `values`.
   */
  readonly name?: string | undefined;
}

const MIN_BYTES = 64 * 1024;
const DEFAULT_BYTES = 64 * 1024 * 1024;
const MAX_NAME_LENGTH = 256;


/** @param defaultName the name if the options contain none. @throws ClusterConfigurationError */
export function resolveCacheOptions(options: ClusterCacheOptions | undefined, defaultName: string) {
  const available = memoryBytes();
  const schema = v.strictObject({
    maxBytes: v.optional(integer(MIN_BYTES, available, ', the available memory'), DEFAULT_BYTES),
    name: v.optional(text(MAX_NAME_LENGTH), defaultName),
  });
  return validate(schema, options ?? {}, 'options of a cluster cache');
}
