/** The places of the `Int32Array` that the main thread and the watchdog's thread share. */
export const MAIN_BEATS = 0;
/** The ticks of the watchdog's thread. */
export const THREAD_TICKS = 1;
/** 1 while the main thread beats fast, otherwise 0. */
export const IS_FAST = 2;
/** The value of {@link MAIN_BEATS} when the watchdog last asked for the cause of a block. */
export const ASKED_AT = 3;
export const PLACES = 4;

/** The interval of the beat while there are requests, in ms. */
export const FAST_MS = 20;

/** The event loop is blocked if it has not turned for longer than this time, in ms. */
export const BLOCK_MS = 50;

/** If the watchdog's own tick is late by this factor, the whole process was stopped, not blocked. */
export const LATE_FACTOR = 4;
