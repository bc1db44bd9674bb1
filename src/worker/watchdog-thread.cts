// The watchdog's own thread: small, so that each worker can afford it, and with nothing of the app.
// CommonJS because that starts with less than a module does.
import fs = require('node:fs');
import workerThreads = require('node:worker_threads');
import type inspector = require('node:inspector');
import type { Envelope } from '../ipc/envelope.js' with { 'resolution-mode': 'import' };
import type { WatchdogData } from './watchdog.js' with { 'resolution-mode': 'import' };

const { beat, tickMs, blockedAfterMs, primaryPid, reportTo, question } =
  workerThreads.workerData as WatchdogData;
const beats = new Int32Array(beat);

const ENVELOPE: Envelope = { ns: 'nestjs-cluster', v: 1 };

/** A worker that can ends within 2 s by itself when its primary is gone: this is for one that cannot. */
const ORPHAN_MS = 2_300;

/** An event loop in native code answers nothing. */
const ANSWER_TIMEOUT_MS = 500;

/** The thread's own tick came so late that the whole process was stopped: nothing was blocked. */
const LATE_FACTOR = 4;

let lastBeat = -1;
let lastBeatAt = performance.now();
let lastTickAt = lastBeatAt;
let orphanedAt: number | undefined;
/** Of the block that was reported; counts up so that a late answer to an earlier question is dropped. */
let block = 0;
let reported = false;

setInterval(() => {
  const now = performance.now();
  const late = now - lastTickAt > LATE_FACTOR * tickMs;
  lastTickAt = now;
  const beatNow = Atomics.load(beats, 0);
  if (beatNow !== lastBeat || late) {
    if (reported) write({ type: 'resumed' });
    lastBeat = beatNow;
    lastBeatAt = now;
    reported = false;
    block += 1;
  } else if (!reported && now - lastBeatAt >= blockedAfterMs) {
    reported = true;
    askMainThread(block);
  }
  if (process.ppid !== primaryPid) {
    orphanedAt ??= now;
    if (now - orphanedAt >= ORPHAN_MS) process.kill(process.pid, 'SIGKILL');
  }
}, tickMs);

/**
 * Asks the main thread what it is doing. The inspector interrupts whatever runs
 * there, an endless loop or a regular expression, so that the answer's stack is
 * that of the block.
 */
function askMainThread(asked: number): void {
  let answered = false;
  const answer = (found: { requests: unknown; frames: unknown }): void => {
    if (answered || asked !== block) return;
    answered = true;
    write({ type: 'blocked', forMs: performance.now() - lastBeatAt, ...found });
  };
  const nothing = { requests: [], frames: [] };
  setTimeout(() => answer(nothing), ANSWER_TIMEOUT_MS);
  try {
    // Loaded when it is needed, and not to be had in every build of Node.
    const { Session } = require('node:inspector') as typeof inspector;
    const session = new Session();
    session.connectToMainThread();
    session.post('Runtime.evaluate', { expression: question }, (error, reply) => {
      session.disconnect();
      const value: unknown = reply?.result?.value;
      answer(error === null && typeof value === 'string' ? JSON.parse(value) : nothing);
    });
  } catch {
    answer(nothing);
  }
}

function write(message: object): void {
  if (reportTo === undefined) return;
  try {
    fs.writeSync(reportTo, `${JSON.stringify({ ...ENVELOPE, ...message })}\n`);
  } catch {
    // the primary is gone, or too far behind to read one more report
  }
}
