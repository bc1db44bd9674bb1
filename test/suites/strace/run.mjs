// Lets system calls of the primary fail, one at a time, while workers are killed and replaced. Afterwards the
// cluster serves on, or it has ended with a line that says why and has left no process. It never hangs.
// Options: --only 'openat EMFILE', --nth 1,7: which call of a kind fails, --phase 'a reload'.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Cluster } from '../cluster.mjs';
import { needs } from '../install.mjs';
import { Verdict } from '../verdict.mjs';
import { FAILURES } from './failures.mjs';

const { values: options } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    nth: { type: 'string', default: '1,7' },
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
    options: {
      admin: { port: 0 },
      heartbeat: { intervalMs: 500, timeoutMs: 5_000 },
      restart: { maxFailures: 1_000, maxBackoffMs: 100 },
    },
  });

const READY_MS = 20_000;
const NODE = 'libuv or V8 ends the process at once, and the workers end themselves';

/** What the primary does while a system call fails. */
const PHASES = {
  async 'a worker is killed'() {
    process.kill(cluster.workers.get(0), 'SIGKILL');
    await serves();
  },
  async 'a reload'() {
    const before = [...cluster.workers.values()];
    cluster.child.kill('SIGHUP');
    const isNew = () => [...cluster.workers.values()].every((pid) => !before.includes(pid));
    await cluster.until('a reload', isNew, READY_MS);
  },
  async 'it stops'() {
    cluster.child.kill('SIGTERM');
    await cluster.until('its end', () => false, READY_MS);
  },
};

/** Asks the primary itself, through its control socket. */
async function status() {
  const directory = join(cluster.directory, 'nestjs-cluster');
  const socketPath = join(
    directory,
    readdirSync(directory).find((name) => name.endsWith('.sock')),
  );
  const request = get({ socketPath, path: '/v1/status', signal: AbortSignal.timeout(5_000) });
  const [response] = await once(request, 'response');
  if (response.statusCode !== 200) throw new Error(`the control socket: ${response.statusCode}`);
  response.resume();
  await once(response, 'end');
}

/** Waits until each slot has a worker, and all that is asked has answers. */
async function serves() {
  const isWhole = () => [...cluster.workers.values()].every((pid) => survivors().includes(pid));
  await cluster.until('all workers', isWhole, READY_MS);
  await status();
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
  const strace = spawn('strace', ['-p', cluster.child.pid, '-e', rule], {
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
      if (cluster.exit === undefined)
        return `it does not serve: ${error.message}\n${cluster.output()}`;
    }
  }
  if (cluster.exit === undefined) return `it does not end\n${cluster.output()}`;
  for (let left = 10_000; survivors().length > 0; left -= 50) {
    if (left <= 0) return `processes are left: ${survivors()}\n${cluster.output()}`;
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
