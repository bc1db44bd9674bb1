// The watchdog thread. Each worker has one, so it loads no app code and little of Node.
// `getBuiltinModule()` loads rarely needed Node modules.
import { readSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import type { HeapProfiler, Profiler } from 'node:inspector';
import type { Session } from 'node:inspector/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { workerData } from 'node:worker_threads';
import type { WatchdogRequest, Envelope, WorkerMessage } from '../../contract/messages.js';
import type { Recording } from '../../contract/snapshot/types.js';
import type { Description, WatchdogData } from './watchdog.js';

const { beats, hangTimeoutMs, primaryPid, reportTo, samplesHeap } = workerData as WatchdogData;

/** The interval at which this thread checks the main thread. */
const tickMs = Math.min(250, Math.max(25, Math.round(hangTimeoutMs / 16)));

/** Reports a block long before the worker counts as hung, because a worker whose heap fills may die first. */
const reportAfterMs = Math.min(1_000, hangTimeoutMs / 2);

/** Calls the function of `watchdog.ts` in the main thread. Its result is a {@link Description} as JSON. */
const QUESTION = `globalThis[Symbol.for('nestjs-cluster.watchdog')]()`;

const ENVELOPE: Envelope = { ns: 'nestjs-cluster', v: 1 };

/** A worker without a primary exits within 2 s. A blocked worker cannot, so it is killed after this time. */
const ORPHAN_MS = 2_300;

/** The event loop counts as blocked if the main thread has not ticked for this many of our ticks. */
const BLOCKED_TICKS = 2;

/** If the watchdog's own tick is late by this factor, the whole process was stopped. */
const LATE_FACTOR = 4;

/** If the main thread does not answer in this time, it probably runs native code, which cannot be interrupted. */
const ANSWER_TIMEOUT_MS = 500;

/** Maximum attempts to write to a full pipe. After that, the rest of the message is dropped. */
const WRITE_TRIES = 20;
const WRITE_RETRY_MS = 10;

const REQUEST_BYTES = 4_096;

/** Number of functions logged for each heap profile. */
const TOP_FUNCTIONS = 5;

type HeapProfile = HeapProfiler.SamplingHeapProfile;
type HeapNode = HeapProfiler.SamplingHeapProfileNode;

const pause = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

let lastBeat = -1;
let lastBeatAt = performance.now();
let lastTickAt = lastBeatAt;
let orphanedAt: number | undefined;

/** Each block of the event loop has its own object, so that a late answer is not used for the next block. */
let block: { reported?: boolean } = {};
/** An incomplete line from the primary. */
let request = '';
const input = Buffer.alloc(REQUEST_BYTES);
// Reading an empty pipe throws on each tick. Capturing the unused stack would cost CPU time.
Error.stackTraceLimit = 0;

setInterval(() => {
  const now = performance.now();
  followBeat(now);
  readRequests();
  if (process.ppid !== primaryPid) {
    orphanedAt ??= now;
    if (now - orphanedAt >= ORPHAN_MS) process.kill(process.pid, 'SIGKILL');
  }
}, tickMs);

function followBeat(now: number): void {
  const late = now - lastTickAt > LATE_FACTOR * tickMs;
  lastTickAt = now;
  const beatNow = Atomics.load(beats, 0);
  if (beatNow !== lastBeat || late) {
    if (block.reported) write({ type: 'resumed' });
    lastBeat = beatNow;
    lastBeatAt = now;
    block = {};
  } else if (!block.reported && now - lastBeatAt >= reportAfterMs) {
    reportBlock();
  }
}

function reportBlock(): void {
  block.reported = true;
  const asked = block;
  askMainThread((found) => {
    if (asked === block) write({ type: 'blocked', forMs: blockedMs(), ...found });
  });
}

function blockedMs(): number {
  return performance.now() - lastBeatAt;
}

function isBlocked(): boolean {
  return blockedMs() > BLOCKED_TICKS * tickMs;
}

/**
 * Reads the stack and the running requests of the main thread. The inspector interrupts any
 * JavaScript, even an endless loop or a regular expression.
 *
 * @param report is called again if the answer arrives after the timeout.
 */
function askMainThread(report: (found: Description, answered: boolean) => void): void {
  const nothing = () => report({ requests: [], frames: [] }, false);
  const overdue = setTimeout(nothing, ANSWER_TIMEOUT_MS);
  const evaluate = async (): Promise<void> => {
    // Some builds of Node have no inspector.
    const session = new (process.getBuiltinModule('node:inspector/promises').Session)();
    session.connectToMainThread();
    const { result } = await session
      .post('Runtime.evaluate', { expression: QUESTION })
      .finally(() => session.disconnect());
    report(JSON.parse(result.value as string) as Description, true);
  };
  evaluate()
    .catch(nothing)
    .finally(() => clearTimeout(overdue));
}

/** The main thread has made the pipe non-blocking. */
function readRequests(): void {
  let bytes: number;
  try {
    bytes = readSync(reportTo, input);
  } catch {
    return; // usually EAGAIN: the pipe is empty
  }
  const lines = (request + input.toString('latin1', 0, bytes)).split('\n');
  request = lines.pop()!;
  for (const line of lines) answerRequest(JSON.parse(line) as WatchdogRequest);
}

function answerRequest(asked: WatchdogRequest): void {
  if (asked.type === 'stack') {
    const { id } = asked;
    const blockedForMs = isBlocked() ? blockedMs() : null;
    return askMainThread((found, answered) =>
      write({ type: 'stack', id, blockedForMs, ...found, answered }),
    );
  }
  const { id, to } = asked;
  record(asked, isBlocked(), to).then(
    (top) => write({ type: 'recorded', id, problem: null, top }),
    (error: Error) => write({ type: 'recorded', id, problem: error.message, top: [] }),
  );
}

function write(message: WorkerMessage): void {
  let left = Buffer.from(`${JSON.stringify({ ...ENVELOPE, ...message })}\n`);
  for (let tries = 0; left.length > 0 && tries < WRITE_TRIES; tries += 1) {
    try {
      left = left.subarray(writeSync(reportTo, left));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return; // the primary has died
      Atomics.wait(pause, 0, 0, WRITE_RETRY_MS);
    }
  }
}

/**
 * Records a CPU or heap profile of the main thread, even if it is blocked, and writes it as JSON to
 * a new file. If this thread ended while recording, Node 20 to 26 could abort the process.
 */
async function record(job: Recording, blocked: boolean, file: string): Promise<string[]> {
  const session = new (process.getBuiltinModule('node:inspector/promises').Session)();
  try {
    session.connectToMainThread();
    const profile = await (job.kind === 'cpu-profile'
      ? recordCpu(session, job.seconds, blocked)
      : recordHeap(session, job.seconds));
    writeFileSync(file, JSON.stringify(profile), { flag: 'wx', mode: 0o600 });
    return 'head' in profile ? topOf(profile.head) : [];
  } catch (error) {
    rmSync(file, { force: true }); // the disk may be full
    throw error;
  } finally {
    session.disconnect();
  }
}

async function recordCpu(
  session: Session,
  seconds: number,
  blocked: boolean,
): Promise<Profiler.Profile> {
  await session.post('Profiler.enable');
  await session.post('Profiler.start');
  if (blocked) {
    // A profile only knows functions that V8 compiles during the recording. Time in a blocking loop
    // compiled earlier would count toward its caller. Starting coverage discards all compiled code,
    // even running code, so V8 compiles it again.
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    await session.post('Profiler.stopPreciseCoverage');
  }
  await delay(seconds * 1_000);
  return (await session.post('Profiler.stop')).profile;
}

async function recordHeap(session: Session, seconds: number): Promise<HeapProfile> {
  if (!samplesHeap) await session.post('HeapProfiler.startSampling');
  await delay(seconds * 1_000);
  if (!samplesHeap) return (await session.post('HeapProfiler.stopSampling')).profile;
  await session.post('HeapProfiler.collectGarbage'); // so that only live objects are counted
  return (await session.post('HeapProfiler.getSamplingProfile')).profile;
}

/** The top allocators of live memory, largest first. Node's code counts toward its caller. */
function topOf(head: HeapNode): string[] {
  const bytes = new Map<string, number>();
  const add = ({ callFrame, selfSize, children }: HeapNode, caller: string): void => {
    const { functionName, url, lineNumber, columnNumber } = callFrame;
    const place = `${functionName || '(anonymous)'} (${url}:${lineNumber + 1}:${columnNumber + 1})`;
    const owner = url === '' || url.startsWith('node:') ? caller : place;
    bytes.set(owner, (bytes.get(owner) ?? 0) + selfSize);
    for (const child of children) add(child, owner);
  };
  add(head, 'Node');
  const largest = [...bytes].sort(([, a], [, b]) => b - a).slice(0, TOP_FUNCTIONS);
  return largest.map(([place, size]) => `${(size / 1e6).toFixed(1)} MB in ${place}`);
}
