/**
 * The time of a monotonic clock that all processes and threads of the machine share, in ms.
 * `performance.now()` differs between them, because it counts from the start of its own.
 */
export declare function machineNow(): number;
/** The difference between the system clock and a monotonic clock, in ms. It changes when the system clock is set. */
export declare function clockMs(): number;
/** Whether the system clock was set since `clockMs()` returned `before`. */
export declare function wasClockSet(before: number): boolean;
/**
 * The difference between `machineNow()` and `performance.now()` of this process, in ms. Takes the
 * fastest of ten tries, because the process may be interrupted between two readings.
 */
export declare function machineClockMs(): number;
