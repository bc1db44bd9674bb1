import { rmSync, writeFileSync } from 'node:fs';
import type { RecordingKind } from '../../contract/snapshot/index.js';

interface Job {
  readonly kind: RecordingKind;
  readonly seconds: number;
  /** Whether the event loop of the main thread is blocked. */
  readonly blocked: boolean;
}

/** Records a CPU or heap profile of the main thread, even if that is blocked. */
export class Recorder {
  // This thread must not end while a session is open: that can abort the process (Node 20 to 26).
  readonly #session = new (process.getBuiltinModule('node:inspector').Session)();

  constructor(private readonly job: Job) {}

  /** Records, and writes the profile as JSON to a file that must not exist. */
  async write(file: string): Promise<void> {
    try {
      this.#session.connectToMainThread();
      const profile = JSON.stringify(await this.#recordings[this.job.kind]());
      writeFileSync(file, profile, { flag: 'wx', mode: 0o600 });
    } catch (error) {
      rmSync(file, { force: true }); // the disk may be full
      throw error;
    } finally {
      this.#session.disconnect();
    }
  }

  readonly #recordings: Readonly<Record<RecordingKind, () => Promise<unknown>>> = {
    'cpu-profile': () => this.#ofCpu(),
    'heap-profile': () => this.#ofHeap(),
  };

  async #ofCpu(): Promise<unknown> {
    await this.#post('Profiler.enable');
    await this.#post('Profiler.start');
    if (this.job.blocked) {
      // A profile only knows code that V8 compiles during the recording. The time of a blocking
      // loop, which V8 has compiled before, would count for the loop's caller. Starting to count
      // coverage discards all compiled code, even code that runs, so V8 compiles it again.
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
    return new Promise((resolve) => setTimeout(resolve, this.job.seconds * 1_000));
  }

  #post(method: string, parameters: object = {}): Promise<Record<string, unknown>> {
    return new Promise((resolve, reject) => {
      this.#session.post(method, parameters, (error, result) => {
        // The inspector's error object is not an instance of Error.
        if (error !== null) reject(new Error(error.message));
        else resolve(result as Record<string, unknown>);
      });
    });
  }
}
