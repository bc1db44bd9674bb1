import { autoOrInteger, oneOf, option, optionGroup, variable } from './schema.js';

/** Maximum number of threads of a process. A higher number is probably a mistake, and is refused. */
export const MAX_THREADS = 256;

/** The place where a `@CpuBound()` method runs: in a thread of the pool, or on the event loop. */
export type OffloadMode = 'threads' | 'inline';

/** The option `offload.threads`. */
export const threads = variable('CLUSTER_THREADS', option(autoOrInteger(1, MAX_THREADS), 'auto'));

/**
 * The variables about threads. Separate from the options of `forRoot()`, because the primary checks
 * them before it forks, and does not load those options.
 */
export const offloadVariables = optionGroup({
  mode: variable('CLUSTER_OFFLOAD', option(oneOf(['threads', 'inline']), undefined)),
  threads,
});
