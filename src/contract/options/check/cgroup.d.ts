/** Reads a file of /proc or /sys as text; `undefined` if there is none. */
export type FileReader = (path: string) => string | undefined;
/** The limits of the control groups of this process. `undefined` = no limit. */
export interface CgroupLimits {
    /** CPU quota in cores; may be fractional. */
    cpus: number | undefined;
    memoryBytes: number | undefined;
}
/**
 * Reads the limits of cgroup v2 and v1. Node also reports the CPU limit, but only from 22.12 (libuv
 * 1.49), and for a quota below one core it reports the number of the host's cores
 * (https://github.com/nodejs/node/issues/59200).
 */
export declare function readCgroupLimits(read?: FileReader): CgroupLimits;
/** The memory that this process can use: at most the limit of its control groups and the memory of the machine. */
export declare function memoryBytes(): number;
/** The number of processes of this control group that were killed for lack of memory; `undefined` if unknown. */
export declare function readOomKills(read?: FileReader): number | undefined;
