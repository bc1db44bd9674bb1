import { describe, it } from 'vitest';

/**
 * Whether this is the first run of a file. The files of `NODE_SENSITIVE` run once more on another
 * Node: `vitest.config.ts` says so by this variable.
 */
export const IS_FIRST_RUN = process.env['TEST_RUN_AGAIN'] === undefined;

/** Takes what `it` and `describe` take, and defines nothing: such a test is not skipped. */
const leaveOut = Object.assign(() => {}, { each: () => leaveOut });

/** `it()` for what no Node could make differ: it is not run again on another. */
export const itOnce = IS_FIRST_RUN ? it : (leaveOut as unknown as typeof it);

/** `describe()` for the same. */
export const describeOnce = IS_FIRST_RUN ? describe : (leaveOut as unknown as typeof describe);
