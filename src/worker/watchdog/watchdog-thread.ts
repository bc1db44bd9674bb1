// The thread of the watchdog. It loads nothing of the app and is small, because each worker has
// such a thread. `getBuiltinModule()` loads the parts of Node that only few threads need.
import { readSync, writeSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import type { WatchdogRequest } from '../../contract/ipc/block-report.js';
import type { Envelope } from '../../contract/ipc/envelope.js';
import type { WorkerMessage } from '../../contract/ipc/worker-message.js';
import { askMainThread, evaluateInMainThread } from './ask-main-thread.js';
import {
  ASKED_AT,
  FAST_MS,
  IS_FAST,
  LATE_FACTOR,
  MAIN_BEATS,
  THREAD_TICKS,
} from './beat-memory.js';
import { Recorder } from './recorder.js';
import type { WatchdogData } from './watchdog.js';

const { beats, tickMs, blockedAfterMs, primaryPid, reportTo, question, noteCause, noted } =
  workerData as WatchdogData;

const ENVELOPE: Envelope = { ns: 'nestjs-cluster', v: 1 };

/** A worker without a primary ends itself within 2 s. A blocked worker cannot, so it is killed after this time. */
const ORPHAN_MS = 2_300;

/** The event loop is blocked if the main thread has missed this many beats. */
const BLOCKED_BEATS = 2;

/**
 * After this many fast ticks without a beat, the main thread is asked what blocks it: 40 to 60 ms
 * after its last beat, before a block is over, and so at most 25 times a second.
 */
const ASK_AFTER_TICKS = 2;

/** Maximum number of tries to write to a full pipe. After that the rest of the message is dropped. */
const WRITE_TRIES = 20;
const WRITE_RETRY_MS = 10;

/** Timers may fire early by this time, in ms. */
const TICK_ERROR_MS = 2;

const REQUEST_BYTES = 4_096;

const pause = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

let lastBeat = -1;
let lastBeatAt = performance.now();
let lastTickAt = lastBeatAt;
let choresDueAt = lastBeatAt;
let orphanedAt: number | undefined;

/** One block of the event loop, or a busy time that may become one. */
interface Block {
  reported?: boolean;
  /** The number of ticks without a beat. */
  silentTicks: number;
}
/** Each block has its own object, so that a late answer is not used for the next block. */
let block: Block = { silentTicks: 0 };
/** The beginning of a line from the primary whose end has not arrived. */
let request = '';
const input = Buffer.alloc(REQUEST_BYTES);
// Reading an empty pipe throws at each tick. Nobody reads the error's stack, so do not collect it.
Error.stackTraceLimit = 0;

let isFast = false;
let timer = setInterval(tick, tickMs);
// The main thread begins to beat fast.
parentPort!.on('message', () => {
  tickFast(true);
  tick();
});

function tickFast(fast: boolean): void {
  isFast = fast;
  clearInterval(timer);
  timer = setInterval(tick, fast ? FAST_MS : tickMs);
}

function tick(): void {
  if (isFast && Atomics.load(beats, IS_FAST) === 0) tickFast(false);
  const now = performance.now();
  followBeat(now);
  if (now >= choresDueAt) {
    choresDueAt = now + tickMs - TICK_ERROR_MS;
    doChores(now);
  }
}

function followBeat(now: number): void {
  Atomics.add(beats, THREAD_TICKS, 1);
  const late = now - lastTickAt > LATE_FACTOR * tickMs;
  lastTickAt = now;
  const beatNow = Atomics.load(beats, MAIN_BEATS);
  if (beatNow !== lastBeat || late) {
    if (block.reported) write({ type: 'resumed' });
    lastBeat = beatNow;
    lastBeatAt = now;
    block = { silentTicks: 0 };
  } else {
    block.silentTicks += 1;
    if (isFast && block.silentTicks === ASK_AFTER_TICKS) askForCause();
    if (now - lastBeatAt >= blockedAfterMs) reportBlock();
  }
}

function doChores(now: number): void {
  readRequests();
  if (process.ppid !== primaryPid) {
    orphanedAt ??= now;
    if (now - orphanedAt >= ORPHAN_MS) process.kill(process.pid, 'SIGKILL');
  }
}

/** Makes the main thread note what blocks it. */
function askForCause(): void {
  Atomics.store(beats, ASKED_AT, lastBeat);
  evaluateInMainThread(noteCause, () => {});
}

function reportBlock(): void {
  if (block.reported) return;
  block.reported = true;
  const asked = block;
  askMainThread(question, noted, ({ requests, frames, certain, suspects }) => {
    if (asked !== block) return;
    if (suspects !== undefined) write({ type: 'suspects', certain: certain === true, suspects });
    write({ type: 'blocked', forMs: blockedMs(), requests, frames });
  });
}

function blockedMs(): number {
  return performance.now() - lastBeatAt;
}

function isBlocked(): boolean {
  return blockedMs() > BLOCKED_BEATS * tickMs;
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
    return askMainThread(question, noted, (found) =>
      write({ type: 'stack', id, blockedForMs, ...found }),
    );
  }
  if (asked.type === 'report-block') {
    if (isBlocked()) reportBlock();
    return;
  }
  const { kind, seconds, to } = asked;
  void new Recorder({ kind, ms: seconds * 1_000, blocked: isBlocked() }).send(to);
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
