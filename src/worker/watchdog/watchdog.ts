import inspector from 'node:inspector';
import { Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import type { BlockReport } from '../../contract/messages.js';
import { LEAVE_OUT_OF_BUNDLE, ownFile } from '../../contract/process/own-file.js';
import type { ProcessMeter } from '../../contract/process/process-meter.js';
import { runningRequests } from '../serve/request-scope.js';
import type { RequestTracker } from '../serve/tracker.js';

/** The `workerData` of the watchdog thread. */
export interface WatchdogData {
  /** {@link ProcessMeter.beats}. */
  readonly beats: ProcessMeter['beats'];
  /** A hung worker is killed after this time, so a block must be reported earlier. */
  readonly hangTimeoutMs: number;
  readonly primaryPid: number;
  readonly reportTo: number;
  /** Whether the main thread has sampled its allocations since startup. */
  readonly samplesHeap: boolean;
}

export type Description = Omit<BlockReport, 'forMs'>;

/** The thread needs 2 MB. A profile needs more: the JSON of one minute of a large app may take 20 MB. */
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 1 };

/** Maximum number of stack frames in a report. */
const MAX_FRAMES = 20;

/** Maximum number of stack frames that are read: enough to reach the caller of most recursions. */
const DEEPEST = 300;

/** Frames of a mutual recursion are merged if at most this many functions call each other. */
const LONGEST_CYCLE = 3;

/** V8's default of 32 KiB raised the CPU time of a light request by 15 %. */
const SAMPLE_BYTES = 131_072;

/** The key of the global function that the watchdog thread calls in the main thread. */
const DESCRIBE = 'nestjs-cluster.watchdog';

/**
 * Starts a thread that detects a blocked event loop. It reports the blocking stack, and kills the
 * process if the primary dies during the block.
 *
 * @param failed is called if the thread cannot start or fails. The app then serves without it.
 */
export function startWatchdog(
  data: WatchdogData,
  tracker: RequestTracker,
  failed: (error: unknown) => void,
): void {
  const program = ownFile('dist/programs/watchdog-thread.cjs');
  if (program === undefined) return failed(new Error(LEAVE_OUT_OF_BUNDLE));
  Reflect.set(globalThis, Symbol.for(DESCRIBE), () => describeMainThread(tracker));
  try {
    // Makes the pipe non-blocking. The thread polls it, because a stream would cost more.
    new Socket({ fd: data.reportTo, readable: false, writable: false }).unref();
    const thread = new Worker(program, {
      workerData: data,
      // The thread must not load the app's loaders or preloaded modules.
      execArgv: [],
      env: {},
      resourceLimits: RESOURCE_LIMITS,
      trackUnmanagedFds: false,
    });
    thread.on('error', failed);
    thread.unref();
  } catch (error) {
    failed(error);
  }
}

/** Starts sampling the allocations of the main thread, for the option `memory.profile`. */
export function sampleHeap(): void {
  const session = new inspector.Session();
  session.connect();
  session.post('HeapProfiler.startSampling', { samplingInterval: SAMPLE_BYTES });
  process.once('exit', () => session.disconnect()); // sampling ends with the session
}

/** Interrupts the code that blocks the event loop, so it must not change any state. */
function describeMainThread(tracker: RequestTracker): string {
  const limit = Error.stackTraceLimit;
  // The stack contains the blocking code, because this function interrupts it.
  Error.stackTraceLimit = DEEPEST;
  const { stack } = new Error();
  Error.stackTraceLimit = limit;
  return JSON.stringify({
    requests: runningRequests(tracker),
    frames: framesBelow(String(stack)),
  });
}

/** The frames of the blocking code. They lie below the frame of the evaluated expression. */
export function framesBelow(stack: string): string[] {
  const frames = stack
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line.startsWith('at '));
  const evaluated = frames.findIndex((frame) =>
    /^at (eval \()?<anonymous>:\d+:\d+\)?$/.test(frame),
  );
  return foldRecursion(frames.slice(evaluated + 1).map((frame) => frame.slice('at '.length))).slice(
    0,
    MAX_FRAMES,
  );
}

/** Merges a recursion's frames into one line with their count, so that its callers are also shown. */
function foldRecursion(frames: readonly string[]): string[] {
  const kept: { readonly frame: string; readonly place: string; times: number }[] = [];
  for (const frame of frames) {
    // Anonymous functions are distinguished by their position.
    const hasName = frame.endsWith(')') && !frame.includes('<anonymous>');
    const place = hasName ? frame.replace(/:\d+:\d+\)$/, '') : frame;
    const before = kept.slice(-LONGEST_CYCLE).find((each) => each.place === place);
    if (before === undefined) kept.push({ frame, place, times: 1 });
    else before.times += 1;
  }
  return kept.map(({ frame, times }) => (times === 1 ? frame : `${frame}, ${times} times`));
}
