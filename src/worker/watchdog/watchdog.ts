import inspector from 'node:inspector';
import { Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import type { BlockReport } from '../../contract/messages.js';
import { LEAVE_OUT_OF_BUNDLE, ownFile } from '../../contract/process/own-file.js';
import type { ProcessMeter } from '../../contract/process/process-meter.js';
import { runningRequests } from '../serve/request-scope.js';
import type { RequestTracker } from '../serve/tracker.js';

/** The data of the watchdog's thread. */
export interface WatchdogData {
  /** {@link ProcessMeter.beats}. */
  readonly beats: ProcessMeter['beats'];
  /** The time after which a hung worker is killed, in ms. The report must be sent before. */
  readonly hangTimeoutMs: number;
  readonly primaryPid: number;
  readonly reportTo: number;
  /** Whether the main thread samples its allocations since it became ready. */
  readonly samplesHeap: boolean;
}

export type Description = Omit<BlockReport, 'forMs'>;

/** The thread itself needs 2 MB. The rest is for a profile: one minute of a large app may take 20 MB of text. */
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 1 };

/** The maximum number of stack frames in a report. */
const MAX_FRAMES = 20;

/** The maximum number of stack frames that are read: enough to reach the caller of most recursions. */
const DEEPEST = 300;

/** The maximum number of functions in a mutual recursion that is folded. */
const LONGEST_CYCLE = 3;

/** V8's default of 32 KiB made a light request 15 % dearer. */
const SAMPLE_BYTES = 131_072;

/** The key of the global function that the thread calls in the main thread, by `QUESTION`. */
const DESCRIBE = 'nestjs-cluster.watchdog';

/**
 * Starts a thread that notices when the event loop of this process is blocked. The thread reports
 * the block and its stack, and ends the process if the primary ends during the block.
 *
 * @param failed is called if the thread could not be started or has failed. The app then serves without it.
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
    // Makes the pipe non-blocking: the thread reads it at its tick, because a stream would cost more.
    new Socket({ fd: data.reportTo, readable: false, writable: false }).unref();
    const thread = new Worker(program, {
      workerData: data,
      // Inherits nothing from the app: no loader, no preloaded module, no NODE_OPTIONS.
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

/** Samples the allocations of the main thread from now on, for the option `memory.profile`. */
export function sampleHeap(): void {
  const session = new inspector.Session();
  session.connect();
  session.post('HeapProfiler.startSampling', { samplingInterval: SAMPLE_BYTES });
  process.once('exit', () => session.disconnect()); // sampling ends with the session
}

/** Only reads the state and changes nothing, because it interrupts the code that blocks the event loop. */
function describeMainThread(tracker: RequestTracker): string {
  const limit = Error.stackTraceLimit;
  // The stack has the frames of the block, of this function and of its caller.
  Error.stackTraceLimit = DEEPEST;
  const { stack } = new Error();
  Error.stackTraceLimit = limit;
  return JSON.stringify({
    requests: runningRequests(tracker),
    frames: framesBelow(String(stack)),
  });
}

/** The frames of the blocking code, which lie below the frame of the evaluated expression. */
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

/** Keeps each function of a recursion once, with its number of frames, so that the callers show too. */
function foldRecursion(frames: readonly string[]): string[] {
  const kept: { readonly frame: string; readonly place: string; times: number }[] = [];
  for (const frame of frames) {
    // Functions without a name are distinguished by their line.
    const hasName = frame.endsWith(')') && !frame.includes('<anonymous>');
    const place = hasName ? frame.replace(/:\d+:\d+\)$/, '') : frame;
    const before = kept.slice(-LONGEST_CYCLE).find((each) => each.place === place);
    if (before === undefined) kept.push({ frame, place, times: 1 });
    else before.times += 1;
  }
  return kept.map(({ frame, times }) => (times === 1 ? frame : `${frame}, ${times} times`));
}
