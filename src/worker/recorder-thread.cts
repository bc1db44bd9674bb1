// Records what the main thread does, also while that is blocked: a thread for the time that it
// takes, so that a large profile needs no room in the watchdog's, and keeps that from nothing.
import fs = require('node:fs');
import inspector = require('node:inspector');
import path = require('node:path');
import workerThreads = require('node:worker_threads');
import ByteSink = require('./byte-sink.cjs');
import type { RecordingKind } from '../snapshot/index.js' with { 'resolution-mode': 'import' };

/** What the thread is started with. */
export interface RecorderData {
  readonly kind: RecordingKind;
  readonly ms: number;
  /** The main thread has been in the same piece of code for a while. */
  readonly blocked: boolean;
  /** A unix socket that takes the recording, or a file that it is written to. */
  readonly to: { readonly socket: string } | { readonly directory: string; readonly name: string };
}

/** What the thread says where it has written a file. */
export type RecorderResult = { readonly file: string } | { readonly problem: string };

/** Of older blocks: what nobody has looked at by then nobody will. */
const FILES_KEPT = 10;

const { kind, ms, blocked, to } = workerThreads.workerData as RecorderData;

const session = new inspector.Session();

function post(method: string, parameters: object = {}): Promise<Record<string, unknown>> {
  return new Promise((resolve, reject) => {
    session.post(method, parameters, (error, result) => {
      // Of the inspector's own making: an object that is no error.
      if (error !== null) reject(new Error(error.message));
      else resolve(result as Record<string, unknown>);
    });
  });
}

/** @returns JSON, as Chrome's and VS Code's tools read it. */
async function record(): Promise<Buffer> {
  session.connectToMainThread();
  const profile = kind === 'cpu-profile' ? await cpuProfile() : await heapProfile();
  session.disconnect();
  return Buffer.from(JSON.stringify(profile));
}

async function cpuProfile(): Promise<unknown> {
  await post('Profiler.enable');
  await post('Profiler.start');
  if (blocked) {
    // A loop runs in code that V8 has compiled for it alone, and that a profile knows only if it is
    // compiled while that records: else its time is said to be its caller's. The coverage throws
    // away all compiled code, whatever runs.
    await post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    await post('Profiler.stopPreciseCoverage');
  }
  await elapsed();
  return (await post('Profiler.stop'))['profile'];
}

async function heapProfile(): Promise<unknown> {
  await post('HeapProfiler.startSampling');
  await elapsed();
  return (await post('HeapProfiler.stopSampling'))['profile'];
}

function elapsed(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Nobody waits for it any more: the inspector stops what is under way with the thread. */
function leave(): void {
  session.disconnect();
  process.exit();
}

async function send(socket: string): Promise<void> {
  const sink = await ByteSink.open(socket, leave);
  try {
    await sink.write(await record());
    await sink.end();
  } catch (error) {
    await sink.fail(error);
  }
}

async function save(directory: string, name: string): Promise<RecorderResult> {
  try {
    const profile = await record();
    makeOwnDirectory(directory);
    dropOldest(directory);
    const file = path.join(directory, name);
    write(file, profile);
    return { file };
  } catch (error) {
    return { problem: (error as Error).message };
  }
}

/** A file is there whole or not at all: the process is killed soon. */
function write(file: string, bytes: Buffer): void {
  const part = `${file}.part`;
  try {
    fs.writeFileSync(part, bytes, { flag: 'wx', mode: 0o600 });
    fs.renameSync(part, file);
  } catch (error) {
    fs.rmSync(part, { force: true });
    throw error;
  }
}

/** In a directory of everybody's the name may be taken, by somebody else or by a link. */
function makeOwnDirectory(directory: string): void {
  if (!fs.existsSync(directory)) fs.mkdirSync(directory, { mode: 0o700 });
  const found = fs.lstatSync(directory);
  const isOwn = found.isDirectory() && found.uid === process.geteuid?.();
  if (!isOwn || (found.mode & 0o077) !== 0) {
    throw new Error(`${directory} is not a directory of this user's alone (mode 0700); remove it`);
  }
}

function dropOldest(directory: string): void {
  const files = fs
    .readdirSync(directory)
    .filter((name) => /^hang-.*\.cpuprofile(\.part)?$/.test(name))
    .sort(); // their names begin with their time
  for (const name of files.slice(0, -(FILES_KEPT - 1))) fs.rmSync(path.join(directory, name));
}

// The inspector's answers alone keep no thread alive.
const alive = setInterval(() => {}, 1_000);
const done =
  'socket' in to
    ? send(to.socket)
    : save(to.directory, to.name).then((result) => workerThreads.parentPort?.postMessage(result));
void done.finally(() => clearInterval(alive));
