/**
 * How long a test waits for what has to come. No promise is in it: on a machine that is busy
 * elsewhere each process, and each thread of it, may be late by seconds.
 */
export const PATIENCE_MS = 45_000;
