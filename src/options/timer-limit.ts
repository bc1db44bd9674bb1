/** Timers of Node hold a signed 32-bit number of ms; a longer one fires at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1;
