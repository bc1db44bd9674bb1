// Records what the main thread does, also while that is blocked. Loaded when that is wanted.
import fs = require('node:fs');
import inspector = require('node:inspector');
import path = require('node:path');
import byteSink = require('./byte-sink.cjs');
import type { RecordingKind } from '../../contract/snapshot/index.js' with {
  'resolution-mode': 'import',
};

interface Job {
  readonly kind: RecordingKind;
  readonly ms: number;
  /** The main thread has been busy with one thing for a while. */
  readonly blocked: boolean;
}

/** Profiles of older blocks are deleted after this: nobody will look at them. */
const FILES_KEPT = 10;

class Recorder {
  // Its thread must not end while there is one: Node aborts the process in that race (20, 24 and 26).
  readonly #session = new inspector.Session();
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly job: Job) {}

  /** Sends it to the listener on a unix socket, and ends if that has left. */
  async send(socket: string): Promise<void> {
    const sink = await byteSink.ByteSink.open(socket, () => this.stop()).catch(() => undefined);
    if (sink === undefined) return;
    try {
      await sink.write(await this.#record());
      await sink.end();
    } catch (error) {
      await sink.fail(error);
    }
  }

  /** @returns the file that it has been written to. */
  async save(directory: string, name: string): Promise<string> {
    const profile = await this.#record();
    makeOwnDirectory(directory);
    dropOldest(directory);
    const file = path.join(directory, name);
    write(file, profile);
    return file;
  }

  /** Nobody wants it any more: what was promised stays open. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#session.disconnect();
  }

  /** @returns JSON, as Chrome's and VS Code's tools read it. */
  async #record(): Promise<Buffer> {
    this.#session.connectToMainThread();
    const profile = await (this.job.kind === 'cpu-profile' ? this.#ofCpu() : this.#ofHeap());
    this.#session.disconnect();
    return Buffer.from(JSON.stringify(profile));
  }

  async #ofCpu(): Promise<unknown> {
    await this.#post('Profiler.enable');
    await this.#post('Profiler.start');
    if (this.job.blocked) {
      // A loop runs in code that V8 has compiled for it alone, and that a profile knows only if it
      // is compiled while that records: else its time is said to be its caller's. To begin to count
      // coverage throws away all compiled code, whatever runs.
      await this.#post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
      await this.#post('Profiler.stopPreciseCoverage');
    }
    await this.#elapsed();
    return (await this.#post('Profiler.stop'))['profile'];
  }

  async #ofHeap(): Promise<unknown> {
    await this.#post('HeapProfiler.startSampling');
    await this.#elapsed();
    return (await this.#post('HeapProfiler.stopSampling'))['profile'];
  }

  #elapsed(): Promise<void> {
    return new Promise((resolve) => {
      this.#timer = setTimeout(resolve, this.job.ms);
    });
  }

  #post(method: string, parameters: object = {}): Promise<Record<string, unknown>> {
    return new Promise((resolve, reject) => {
      this.#session.post(method, parameters, (error, result) => {
        // The inspector's own object: it is not an Error.
        if (error !== null) reject(new Error(error.message));
        else resolve(result as Record<string, unknown>);
      });
    });
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

export = Recorder;
