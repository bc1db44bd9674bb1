// Lets system calls of the primary fail, one at a time, while workers are killed and replaced. Afterwards the
// cluster serves on, or it has ended with a line that says why and has left no process. It never hangs.
// Options: --only 'openat EMFILE', --nth 1,7: which calls of a kind fail, --phase 'a reload'.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { deserialize, serialize } from 'node:v8';
import { Cluster } from '../cluster.mjs';
import { needs } from '../install.mjs';
import { Verdict } from '../verdict.mjs';
import { FAILURES } from './failures.mjs';

const { values: options } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    nth: { type: 'string', default: '1' },
    phase: { type: 'string', default: '' },
  },
});
needs('strace', 'strace');
const cases = Object.entries(FAILURES)
  .flatMap(([call, errnos]) => errnos.map((errno) => [call, errno]))
  .flatMap((failure) => options.nth.split(',').map((nth) => [...failure, nth]))
  .filter((failure) => failure.join(' ').includes(options.only));

let cluster;
const start = () =>
  Cluster.start({
    app: join(import.meta.dirname, '../keyv/app.mjs'),
    options: {
      admin: { port: 0 },
      hangTimeoutMs: 5_000,
    },
  });

/** Longer than `readyTimeoutMs`. */
const READY_MS = 40_000;
const NODE = 'libuv or V8 ends the process at once, and the workers end themselves';

/** The work of the primary while a system call fails. */
const PHASES = {
  async 'a worker is killed'() {
    const [worker] = await readyWorkers().catch(readyWorkers).catch(readyWorkers);
    process.kill(worker.pid, 'SIGKILL');
    await cluster.until('its end', () => !survivors().includes(worker.pid));
    await serves();
  },
  async 'a reload'() {
    const last = cluster.event('reload-ended');
    cluster.child.kill('SIGHUP');
    const isDone = () => cluster.event('reload-ended') !== last;
    await cluster.until('a reload', isDone, READY_MS);
  },
  async 'the hub is used'() {
    for (let n = 0; n < 20; n += 1) await cache().catch(() => {});
  },
  async 'it stops'() {
    cluster.child.kill('SIGTERM');
    // libuv loses a signal if it cannot read or write its own pipes. An operator sends another.
    const isHeard = () => cluster.event('stopping') !== undefined;
    await cluster.until('the signal', isHeard, 3_000).catch(() => cluster.child.kill('SIGTERM'));
    await cluster.until('its end', () => false, READY_MS);
  },
};

/** Sets and reads a value that all workers share. */
async function cache() {
  const call = async (...call) => {
    const response = await fetch(`${cluster.url}/store`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify({ call: serialize([undefined, ...call]).toString('base64') }),
      signal: AbortSignal.timeout(6_000),
    });
    return deserialize(Buffer.from(await response.text(), 'base64'));
  };
  const value = String(Math.random());
  await call('set', ['key', value]);
  const read = await call('get', ['key']);
  if (read !== value) throw new Error(`the cache has ${read}, not ${value}`);
}

/**
 * The workers that are ready. Asks the primary itself, through its control socket. After an accept()
 * without descriptors, libuv closes all connections that wait.
 */
async function readyWorkers() {
  const directory = join(cluster.directory, 'nestjs-cluster');
  const socketPath = join(
    directory,
    readdirSync(directory).find((name) => name.endsWith('.sock')),
  );
  const signal = AbortSignal.timeout(5_000);
  const request = get({ socketPath, path: '/v1/status', agent: false, signal });
  const [response] = await once(request, 'response');
  const { cluster: report } = JSON.parse(await text(response));
  return report.workers.filter(({ state }) => state === 'ready');
}

/** Waits until each slot has a worker, and all that is asked has answers. */
async function serves() {
  for (const end = performance.now() + READY_MS; ; await delay(100)) {
    const workers = await readyWorkers().catch(() => []);
    const present = survivors();
    if (workers.length === 2 && workers.every(({ pid }) => present.includes(pid))) break;
    if (performance.now() > end) throw new Error(`there are ${workers.length} workers`);
  }
  // A change that the hub has not confirmed fails, so it is made again.
  await cache().catch(cache).catch(cache);
  for (const url of [cluster.url, cluster.adminUrl]) {
    const answer = await fetch(`${url}/health`, {
      headers: { connection: 'close' },
      signal: AbortSignal.timeout(5_000),
    });
    if (answer.status !== 200) throw new Error(`${url}/health: ${await answer.text()}`);
  }
}

/** Pids of the processes of the cluster that have not ended. */
function survivors() {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => {
      try {
        const [state, , group] = readFileSync(`/proc/${pid}/stat`, 'utf8')
          .split(') ')[1]
          .split(' ');
        return state !== 'Z' && Number(group) === cluster.child.pid; // a zombie has ended
      } catch {
        return false;
      }
    });
}

/** @returns how many calls failed by it, while the primary did that. */
async function inject(phase, call, errno, nth) {
  const rule = `inject=${call}:error=${errno}:when=${nth}`;
  // The hub is a thread of the primary. Without -f, only the main thread is traced, and no worker.
  const threads = phase === 'the hub is used' ? ['-f'] : [];
  const strace = spawn('strace', [...threads, '-p', cluster.child.pid, '-e', rule], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let seen = '';
  strace.stderr.on('data', (text) => (seen += text));
  const ended = once(strace, 'exit');
  while (!seen.includes('attached') && strace.exitCode === null) await delay(10);
  await PHASES[phase]().catch(() => {}); // it may fail by it; what follows must not
  strace.kill('SIGINT');
  await ended;
  return seen.split('(INJECTED)').length - 1;
}

/** @returns what is wrong afterwards; `undefined` if nothing is. */
async function problemAfter(phase) {
  if (cluster.exit === undefined && phase !== 'it stops') {
    try {
      await serves();
      await PHASES['a worker is killed']();
      return undefined;
    } catch (error) {
      await Promise.race([cluster.exited, delay(3_000)]); // it may have ended just now
      if (cluster.exit === undefined)
        return `it does not serve: ${error.message}\n${cluster.output()}`;
    }
  }
  if (cluster.exit === undefined) return `it does not end\n${cluster.output()}`;
  for (let left = 10_000; survivors().length > 0; left -= 50) {
    if (left <= 0) return `processes are left: ${survivors().join()}\n${cluster.output()}`;
    await delay(50);
  }
  const { code, signal } = cluster.exit;
  const isSaid = cluster.events.some(({ event }) => event === 'failed' || event === 'stopped');
  return isSaid
    ? undefined
    : `it ended with ${code ?? signal} without a reason\n${cluster.output()}`;
}

const verdict = new Verdict();
const unreached = [];
const ends = [];
for (const phase of Object.keys(PHASES).filter((each) => each.includes(options.phase))) {
  for (const [call, errno, nth] of cases) {
    cluster ??= await start();
    const name = `${phase}: ${call} ${errno}, call ${nth}`;
    const count = await inject(phase, call, errno, nth);
    const problem = await problemAfter(phase);
    const isNode =
      ['SIGABRT', 'SIGTRAP'].includes(cluster.exit?.signal) && survivors().length === 0;
    if (count === 0 && problem === undefined) unreached.push(name);
    else verdict.add(name, problem, isNode && problem !== undefined ? NODE : undefined);
    if (cluster.exit !== undefined && phase !== 'it stops') ends.push(name);
    if (problem !== undefined || cluster.exit !== undefined) {
      cluster.destroy();
      cluster = undefined;
    }
  }
}
console.log(`${unreached.length} were not reached: ${unreached.join('; ')}`);
console.log(`the cluster ended, and said why: ${ends.join('; ')}`);
verdict.end();
