/** The requests and the stack of a worker, whether it is blocked or not. */
export interface WorkerStack {
    readonly slot: number;
    readonly pid: number;
    /** How long the event loop has been blocked, in ms; `null` if it is not blocked. */
    readonly blockedForMs: number | null;
    /** Requests in flight, oldest first, at most ten. The path is without the query. */
    readonly requests: readonly {
        readonly method: string;
        readonly path: string;
        readonly forMs: number;
    }[];
    /** JavaScript frames, innermost first; empty if the event loop is idle. */
    readonly frames: readonly string[];
    /** Why the stack is not known, in words; `null` if it is known. */
    readonly problem: string | null;
}
/** The recordings that also work while a worker is blocked. */
export type RecordingKind = 'cpu-profile' | 'heap-profile' | 'method-profile';
export interface Recording {
    readonly kind: RecordingKind;
    readonly seconds: number;
}
export interface MethodList {
    readonly methods: readonly AppMethod[];
    /** The length of the source text of each function: its line breaks, and the length of its last line. */
    readonly extents: readonly (readonly [lineBreaks: number, lastLine: number])[];
}
/**
 * The key of a global function of a worker. It returns a {@link MethodList} as JSON, and then the
 * functions that the list numbers.
 */
export declare const LIST_METHODS: unique symbol;
export interface AppMethod {
    /** `Class.method`. */
    readonly name: string;
    /** The route of a handler, e.g. `GET /orders/:id`, without prefixes and versions; else `null`. */
    readonly route: string | null;
    readonly cpuBound: boolean;
    /** Why `@CpuBound()` cannot work on the method, with the remedy; `null` if no reason is known. */
    readonly refusal: string | null;
    /** The number of the method's function, and of the class that declares it. */
    readonly code: number;
    readonly declaredBy: number;
}
/** The begin of a function, by V8's numbers of scripts, lines and columns, from 0. */
export interface CodePlace {
    readonly scriptId: string;
    readonly lineNumber: number;
    readonly columnNumber: number;
}
/** The file of the recording `method-profile`. */
export interface MethodProfile {
    readonly pid: number;
    /** `null` if the app has no `ClusterModule`, so that its methods are not known. */
    readonly list: MethodList | null;
    /** The place of each function; `null` for a function without JavaScript source. */
    readonly places: readonly (CodePlace | null)[];
    /** A CPU profile in V8's format. */
    readonly profile: unknown;
}
