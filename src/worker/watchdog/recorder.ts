import type { Session } from 'node:inspector';
import { rmSync, writeFileSync } from 'node:fs';
import type { Recording } from '../../contract/snapshot/index.js';

/**
 * Records a CPU or heap profile of the main thread, even if that is blocked, and writes it as JSON to
 * a file that must not exist. This thread must not end while it records: that can abort the process
 * (Node 20 to 26).
 */
export async function record(job: Recording, blocked: boolean, file: string): Promise<void> {
  const session = new (process.getBuiltinModule('node:inspector').Session)();
  try {
    session.connectToMainThread();
    const profile = await (job.kind === 'cpu-profile'
      ? recordCpu(session, job.seconds, blocked)
      : recordHeap(session, job.seconds));
    writeFileSync(file, JSON.stringify(profile), { flag: 'wx', mode: 0o600 });
  } catch (error) {
    rmSync(file, { force: true }); // the disk may be full
    throw error;
  } finally {
    session.disconnect();
  }
}

async function recordCpu(session: Session, seconds: number, blocked: boolean): Promise<unknown> {
  await post(session, 'Profiler.enable');
  await post(session, 'Profiler.start');
  if (blocked) {
    // A profile only knows code that V8 compiles during the recording. The time of a blocking
    // loop, which V8 has compiled before, would count for the loop's caller. Starting to count
    // coverage discards all compiled code, even code that runs, so V8 compiles it again.
    await post(session, 'Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    await post(session, 'Profiler.stopPreciseCoverage');
  }
  await elapsed(seconds);
  return (await post(session, 'Profiler.stop'))['profile'];
}

async function recordHeap(session: Session, seconds: number): Promise<unknown> {
  await post(session, 'HeapProfiler.startSampling');
  await elapsed(seconds);
  return (await post(session, 'HeapProfiler.stopSampling'))['profile'];
}

function elapsed(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
}

function post(session: Session, method: string, parameters: object = {}) {
  return new Promise<Record<string, unknown>>((resolve, reject) => {
    session.post(method, parameters, (error, result) => {
      // The inspector's error object is not an instance of Error.
      if (error !== null) reject(new Error(error.message));
      else resolve(result as Record<string, unknown>);
    });
  });
}
