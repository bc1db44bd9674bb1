// Records what the workers of a cluster do with cache, rate limits, locks and limits under faults, and has
// porcupine check that the history is linearizable. Options: --operations 50000,
// --mutation stale-read|one-more, --keep.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';

const { values: options } = parseArgs({
  options: {
    operations: { type: 'string', default: '50000' },
    mutation: { type: 'string', default: '' },
    keep: { type: 'boolean', default: false },
  },
});
const here = import.meta.dirname;
const directory = mkdtempSync(join(tmpdir(), 'porcupine-'));
const hubThread = join(here, '../../fixtures/preload/hub-thread.mjs');
const now = () => Number(process.hrtime.bigint() / 1_000n);

const cluster = spawn(process.execPath, ['--import', hubThread, join(here, 'app.mjs')], {
  stdio: ['ignore', 'pipe', 'pipe'],
  env: {
    ...process.env,
    CLUSTER_LOG_FORMAT: 'json',
    CLUSTER_LOG_LEVEL: 'debug',
    RECORD_DIR: directory,
    XDG_RUNTIME_DIR: directory,
    MUTATION: options.mutation,
  },
});
const ended = new Promise((resolve) =>
  cluster.once('exit', (code, signal) => resolve({ code, signal })),
);
const workers = new Map();
let hubEnds = 0;
let reloads = 0;
const hear = (line) => {
  if (!line.startsWith('{')) return console.log(line);
  const event = JSON.parse(line);
  if (event.event === 'worker-ready') workers.set(event.worker, event.pid);
  if (event.event === 'reload-ended') reloads += 1;
  if (event.message.startsWith('the thread of @nestjs-cluster/shared ended')) hubEnds += 1;
};
for (const input of [cluster.stdout, cluster.stderr]) createInterface({ input }).on('line', hear);

const until = async (what, is, ms = 30_000) => {
  for (let left = ms; !is(); left -= 20) {
    if (left <= 0 || cluster.exitCode !== null) throw new Error(`not in time: ${what}`);
    await delay(20);
  }
};
const anyWorker = () => [...workers][Math.floor(Math.random() * workers.size)];
const faults = {
  async 'a worker is killed'() {
    const [slot, pid] = anyWorker();
    process.kill(pid, 'SIGKILL');
    await until('another worker', () => workers.get(slot) !== pid);
  },
  async 'a worker is stopped'() {
    const [, pid] = anyWorker();
    process.kill(pid, 'SIGSTOP');
    await delay(700);
    process.kill(pid, 'SIGCONT');
  },
  async 'the primary is stopped'() {
    cluster.kill('SIGSTOP');
    await delay(700);
    cluster.kill('SIGCONT');
  },
  async 'the workers are replaced'() {
    const known = reloads;
    cluster.kill('SIGHUP');
    await until('the end of the reload', () => reloads > known, 60_000);
  },
  async 'the hub ends'() {
    const known = hubEnds;
    const call = now();
    cluster.kill('SIGURG');
    await until('another hub', () => hubEnds > known);
    await delay(2_500); // workers are connected again, and locks are given
    resets.push({ kind: 'reset', call, return: now() });
  },
};
/** Limits are counted anew after it. */
const resets = [];

const lines = () =>
  readdirSync(directory)
    .filter((name) => name.endsWith('.jsonl'))
    .flatMap((name) => readFileSync(join(directory, name), 'utf8').split('\n'))
    .filter((line) => line.endsWith('}')) // a worker that is killed may leave half a line
    .map((line) => JSON.parse(line));

const done = new Map();
let exit;
try {
  await until('all workers', () => workers.size === 4, 60_000);
  const names = Object.keys(faults);
  const recorded = () => lines().filter((line) => 'return' in line).length;
  for (let n = 0; n < names.length || recorded() < options.operations; n += 1) {
    const name = names[n % names.length];
    await faults[name]();
    done.set(name, (done.get(name) ?? 0) + 1);
    await delay(1_000);
  }
  writeFileSync(join(directory, 'stop'), '');
  await delay(1_500);
} finally {
  cluster.kill('SIGTERM');
  const timer = setTimeout(() => cluster.kill('SIGKILL'), 20_000);
  exit = await ended;
  clearTimeout(timer);
}

const calls = new Map();
for (const line of lines()) calls.set(line.id, { ...calls.get(line.id), ...line });
const history = join(directory, 'history.jsonl');
writeFileSync(
  history,
  [...calls.values(), ...resets].map((each) => `${JSON.stringify(each)}\n`).join(''),
);
console.log(`faults: ${[...done].map(([name, count]) => `${name} ×${count}`).join(', ')}`);
const checked = spawnSync('go', ['run', '.', history], { cwd: here, stdio: 'inherit' });
if (options.keep || checked.status !== 0) console.log(`the history: ${history}`);
else rmSync(directory, { recursive: true });
if (exit.code !== 0) console.log(`the cluster ended with ${exit.code ?? exit.signal}`);
process.exitCode = checked.status === 0 && exit.code === 0 ? 0 : 1;
