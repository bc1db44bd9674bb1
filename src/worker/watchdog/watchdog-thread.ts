// The thread of the watchdog. It loads nothing of the app and is small, because each worker has
// such a thread. `getBuiltinModule()` loads the parts of Node that only few threads need.
import { readSync, writeSync } from 'node:fs';
import { workerData } from 'node:worker_threads';
import type {
  BlockedRequest,
  BlockReport,
  WatchdogRequest,
} from '../../contract/ipc/block-report.js';
import type { Envelope } from '../../contract/ipc/envelope.js';
import type { WorkerMessage } from '../../contract/ipc/worker-message.js';
import type { RecordingKind } from '../../contract/snapshot/index.js';
import type { Suspects } from '../quarantine/request-watch.js';
import type { HangProfile } from './hang-profile.js';
import { Recorder } from './recorder.js';
import type { WatchdogData } from './watchdog.js';

const { beat, tickMs, blockedAfterMs, primaryPid, reportTo, question, hangProfile, noted } =
  workerData as WatchdogData;
const beats = new Int32Array(beat);

const ENVELOPE: Envelope = { ns: 'nestjs-cluster', v: 1 };

/** A worker without a primary ends itself within 2 s. A blocked worker cannot, so it is killed after this time. */
const ORPHAN_MS = 2_300;

/** Maximum wait for the main thread's answer. The main thread cannot answer while it runs native code. */
const ANSWER_TIMEOUT_MS = 500;

/** If this thread's own tick is late by this factor, the whole process was stopped, not blocked. */
const LATE_FACTOR = 4;

/** The event loop is blocked if the main thread has missed this many beats. */
const BLOCKED_BEATS = 2;

/** Maximum number of tries to write to a full pipe. After that the rest of the message is dropped. */
const WRITE_TRIES = 20;
const WRITE_RETRY_MS = 10;

const REQUEST_BYTES = 4_096;

const pause = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

let lastBeat = -1;
let lastBeatAt = performance.now();
let lastTickAt = lastBeatAt;
let orphanedAt: number | undefined;

/** One block of the event loop, or a busy time that may become one. */
interface Block {
  reported?: boolean;
  lastReport?: BlockReport;
  recorder?: InstanceType<typeof Recorder>;
  /** The path of the block's CPU profile. */
  file?: string;
}
/** Each block has its own object, so that a late answer is not used for the next block. */
let block: Block = {};
/** The beginning of a line from the primary whose end has not arrived. */
let request = '';
const input = Buffer.alloc(REQUEST_BYTES);
// Reading an empty pipe throws at each tick. Nobody reads the error's stack, so do not collect it.
Error.stackTraceLimit = 0;

setInterval(() => {
  const now = performance.now();
  const late = now - lastTickAt > LATE_FACTOR * tickMs;
  lastTickAt = now;
  const beatNow = Atomics.load(beats, 0);
  if (beatNow !== lastBeat || late) {
    if (block.reported) write({ type: 'resumed' });
    lastBeat = beatNow;
    lastBeatAt = now;
    block.recorder?.stop();
    block = {};
  } else if (now - lastBeatAt >= blockedAfterMs) {
    reportBlock();
  }
  if (block.recorder === undefined && hangProfile && blockedMs() >= hangProfile.afterMs) {
    profileHang(hangProfile);
  }
  readRequests();
  if (process.ppid !== primaryPid) {
    orphanedAt ??= now;
    if (now - orphanedAt >= ORPHAN_MS) process.kill(process.pid, 'SIGKILL');
  }
}, tickMs);

function reportBlock(): void {
  if (block.reported) return;
  block.reported = true;
  const asked = block;
  askMainThread(({ requests, frames, certain, suspects }) => {
    if (asked !== block) return;
    if (suspects !== undefined) write({ type: 'suspects', certain: certain === true, suspects });
    report({ forMs: blockedMs(), requests, frames });
  });
}

function blockedMs(): number {
  return performance.now() - lastBeatAt;
}

function isBlocked(): boolean {
  return blockedMs() > BLOCKED_BEATS * tickMs;
}

type Description = Pick<BlockReport, 'requests' | 'frames'> &
  Partial<Suspects> & { readonly answered: boolean };

/**
 * Asks the main thread what it is doing. The inspector interrupts any JavaScript there, even an
 * endless loop or a regular expression, so the answer has the stack of the block.
 */
function askMainThread(tell: (found: Description) => void): void {
  let told = false;
  const answer = (found: Description): void => {
    if (told) return;
    told = true;
    tell(found);
  };
  const answerAlone = () => answer({ requests: readNoted(), frames: [], answered: false });
  setTimeout(answerAlone, ANSWER_TIMEOUT_MS);
  try {
    // Some builds of Node have no inspector.
    const session = new (process.getBuiltinModule('node:inspector').Session)();
    session.connectToMainThread();
    session.post('Runtime.evaluate', { expression: question }, (error, reply) => {
      session.disconnect();
      const value: unknown = reply?.result?.value;
      const isKnown = error === null && typeof value === 'string';
      if (isKnown) answer({ ...JSON.parse(value), answered: true });
      else answerAlone();
    });
  } catch {
    answerAlone();
  }
}

/** Reads the requests in flight from the shared memory, oldest first. */
function readNoted(): BlockedRequest[] {
  const { lengths, startedAt } = noted;
  const text = Buffer.from(noted.text);
  const now = performance.timeOrigin + performance.now();
  const requests = Array.from(lengths, (length, place) => {
    const begin = (place * text.length) / lengths.length;
    const [method = '', url = ''] = text.toString('latin1', begin, begin + length).split(' ');
    // Leaves out the query, which may hold secrets.
    return { method, path: url.split('?')[0]!, forMs: Math.max(0, now - startedAt[place]!) };
  });
  return requests.filter((_, place) => lengths[place]! > 0).sort((a, b) => b.forMs - a.forMs);
}

function report(found: BlockReport): void {
  block.lastReport = found;
  write({ type: 'blocked', ...found, ...(block.file && { profile: block.file }) });
}

/** Records a profile, and then reports the block again, with the profile's file. The last report counts. */
function profileHang({ ms, directory, name }: HangProfile): void {
  const file = `hang-${new Date().toISOString().replaceAll(':', '-')}-${name}.cpuprofile`;
  const profiled = block;
  profiled.recorder = newRecorder('cpu-profile', ms);
  profiled.recorder.save(directory, file).then(
    (saved) => {
      if (profiled !== block) return;
      block.file = saved;
      if (block.lastReport !== undefined) report({ ...block.lastReport, forMs: blockedMs() });
    },
    (error: Error) => {
      // Reports the error only if the block still lasts.
      if (profiled === block) write({ type: 'unprofiled', problem: error.message });
    },
  );
}

function newRecorder(kind: RecordingKind, ms: number): Recorder {
  return new Recorder({ kind, ms, blocked: isBlocked() });
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
    return askMainThread((found) => write({ type: 'stack', id, blockedForMs, ...found }));
  }
  if (asked.type === 'report-block') {
    if (isBlocked()) reportBlock();
    return;
  }
  const { kind, seconds, to } = asked;
  void newRecorder(kind, seconds * 1_000).send(to);
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
