import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { NODE_HAS_COMPILE_CACHE } from '../../contract/process/compile-cache.js';
import { besideThis } from '../../contract/process/own-file.js';
import type { Interruption } from '../app/interruption.js';
import { runReadyApp } from '../app/run-host.js';
import { type Recording, RECORDING_VARIABLE } from './app/recording.js';
import { type BootReport, fastestOf, reportOf, totalOf } from './report.js';

const PRELOAD = besideThis('dist/programs/boot-recorder.cjs')!;
const EXAMINER = pathToFileURL(besideThis('dist/programs/boot-examiner.js')!).href;

/** Starts with the cache, and starts without it. The fastest counts, because other programs disturb a start. */
const ROUNDS = 3;

/**
 * Starts an app several times, records each start, and ends the app. The report is on the fastest
 * start. If Node has a compile cache, the report compares starts with a warm cache and without one.
 *
 * @throws NotMeasuredError if the app does not start.
 */
export async function measureBoot(script: string, interruption: Interruption): Promise<BootReport> {
  const directory = await mkdtemp(join(tmpdir(), 'nestjs-cluster-boot-'));
  const file = join(directory, 'recording.json');
  const task = { script, preload: PRELOAD, examination: { examiner: EXAMINER } };
  const record = async (env?: Readonly<Record<string, string>>): Promise<Recording> => {
    await runReadyApp(task, { [RECORDING_VARIABLE]: file, ...env }, interruption);
    return JSON.parse(await readFile(file, 'utf8')) as Recording;
  };
  try {
    const hasCache = NODE_HAS_COMPILE_CACHE && !process.env['NODE_DISABLE_COMPILE_CACHE'];
    const env = hasCache ? { NODE_COMPILE_CACHE: join(directory, 'cache') } : undefined;
    if (hasCache) await record(env); // fills the cache
    const starts: Recording[] = [];
    const without: Recording[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      if (hasCache) without.push(await record({ NODE_DISABLE_COMPILE_CACHE: '1' }));
      starts.push(await record(env));
    }
    const fastest = fastestOf(without);
    return reportOf(script, fastestOf(starts)!, fastest && totalOf(fastest));
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
