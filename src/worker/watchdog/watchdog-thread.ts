// The thread of the watchdog. It loads nothing of the app and is small, because each worker has
// such a thread. `getBuiltinModule()` loads the parts of Node that only few threads need.
import { readSync, writeSync } from 'node:fs';
import { workerData } from 'node:worker_threads';
import type { WatchdogRequest, Envelope, WorkerMessage } from '../../contract/messages.js';
import { Recorder } from './recorder.js';
import type { Description, WatchdogData } from './watchdog.js';

const { beats, tickMs, blockedAfterMs, primaryPid, reportTo, question } =
  workerData as WatchdogData;

const ENVELOPE: Envelope = { ns: 'nestjs-cluster', v: 1 };

/** A worker without a primary ends itself within 2 s. A blocked worker cannot, so it is killed after this time. */
const ORPHAN_MS = 2_300;

/** The event loop is blocked if the main thread has missed this many beats. */
const BLOCKED_BEATS = 2;

/** If the watchdog's own tick is late by this factor, the whole process was stopped, not blocked. */
const LATE_FACTOR = 4;

/** After this time without an answer, the main thread runs native code, which cannot be interrupted. */
const ANSWER_TIMEOUT_MS = 500;

/** Maximum number of tries to write to a full pipe. After that the rest of the message is dropped. */
const WRITE_TRIES = 20;
const WRITE_RETRY_MS = 10;

const REQUEST_BYTES = 4_096;

const pause = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

let lastBeat = -1;
let lastBeatAt = performance.now();
let lastTickAt = lastBeatAt;
let orphanedAt: number | undefined;

/** A block of the event loop, or a busy time that may become one. Each has its own object, so that a late answer is not used for the next block. */
let block: { reported?: boolean } = {};
/** The beginning of a line from the primary whose end has not arrived. */
let request = '';
const input = Buffer.alloc(REQUEST_BYTES);
// Reading an empty pipe throws at each tick. Nobody reads the error's stack, so do not collect it.
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
  } else if (now - lastBeatAt >= blockedAfterMs) {
    reportBlock();
  }
}

function reportBlock(): void {
  if (block.reported) return;
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
  return blockedMs() > BLOCKED_BEATS * tickMs;
}

/**
 * Asks the main thread what it is doing. The inspector interrupts any JavaScript there, even an
 * endless loop or a regular expression, so the answer has the stack of the block.
 *
 * @param tell is called once more if the answer comes late.
 */
function askMainThread(tell: (found: Description, answered: boolean) => void): void {
  const nothing = () => tell({ requests: [], frames: [] }, false);
  const overdue = setTimeout(nothing, ANSWER_TIMEOUT_MS);
  const answered = (value: unknown): void => {
    clearTimeout(overdue);
    if (typeof value === 'string') tell(JSON.parse(value) as Description, true);
    else nothing();
  };
  try {
    // Some builds of Node have no inspector.
    const session = new (process.getBuiltinModule('node:inspector').Session)();
    session.connectToMainThread();
    session.post('Runtime.evaluate', { expression: question }, (error, reply) => {
      session.disconnect();
      answered(error === null ? reply.result.value : undefined);
    });
  } catch {
    answered(undefined);
  }
}

/** Reads requests of the primary. The main thread has made the pipe non-blocking. */
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
  const { id, kind, seconds, to } = asked;
  new Recorder({ kind, seconds, blocked: isBlocked() }).write(to).then(
    () => write({ type: 'recorded', id, problem: null }),
    (error: Error) => write({ type: 'recorded', id, problem: error.message }),
  );
}

function write(message: WorkerMessage): void {
  let left = Buffer.from(`${JSON.stringify({ ...ENVELOPE, ...message })}\n`);
  for (let tries = 0; left.length > 0 && tries < WRITE_TRIES; tries += 1) {
    try {
      left = left.subarray(writeSync(reportTo, left));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return; // the primary is gone
      Atomics.wait(pause, 0, 0, WRITE_RETRY_MS);
    }
  }
}
