// Preloaded into the worker of `nestjs-cluster boot`: the recording begins before the main file.
import { Session } from 'node:inspector';
import Module, { createRequire } from 'node:module';
import { isMainThread } from 'node:worker_threads';
import { BOOT_START, type BootStart, type Load, type Recording } from './recording.js';

const preloadMs = performance.now();

const SAMPLING_INTERVAL_US = 1_000;

/** A part of Node's class that its types leave out. */
interface FileLoader {
  load(this: unknown, filename: string): void;
}

function startRecording(): BootStart {
  const loads: Load[] = [];
  const loader = Module.prototype as unknown as FileLoader;
  const load = Reflect.get(loader, 'load');
  // Both require() and import call this method for a CommonJS file.
  loader.load = function (filename) {
    loads.push([performance.now(), filename]);
    try {
      load.call(this, filename);
    } finally {
      loads.push([performance.now(), null]);
    }
  };
  const session = new Session();
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.setSamplingInterval', { interval: SAMPLING_INTERVAL_US });
  session.post('Profiler.start');
  const originUs = Number(process.hrtime.bigint()) / 1e3 - performance.now() * 1e3;
  const stop: BootStart['stop'] = () => {
    let profile!: Recording['profile'];
    // A session that inspects its own thread calls back before post() returns.
    session.post('Profiler.stop', (_, result) => (profile = result.profile as typeof profile));
    // The script of a CommonJS file may be garbage by now, so the cache of modules is read as well.
    const scripts = Object.keys(createRequire(process.argv[1]!).cache);
    session.on('Debugger.scriptParsed', ({ params }) => scripts.push(params.url));
    session.post('Debugger.enable');
    session.disconnect();
    return { profile, originUs, loads, scripts };
  };
  return { preloadMs, mainMs: performance.now(), stop };
}

// A thread of the app loads this file again.
if (isMainThread) {
  // Removes `--require` and this file, because the app would pass them on to its own processes.
  process.execArgv.splice(0, 2);
  Reflect.set(globalThis, BOOT_START, startRecording());
}
