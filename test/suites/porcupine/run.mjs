// Records what the workers of a cluster do with cache, rate limits, locks and limits under faults, and has
// porcupine check that the history is linearizable. Options: --operations 50000,
// --mutation stale-read|one-more, --keep.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Cluster } from '../cluster.mjs';

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

const cluster = new Cluster({
  program: join(here, 'app.mjs'),
  execArgv: ['--import', hubThread],
  env: { RECORD_DIR: directory, MUTATION: options.mutation },
});
const { workers } = cluster;
const count = (is) => cluster.events.filter(is).length;
const reloads = () => count(({ event }) => event === 'reload-ended');
const hubEnds = () =>
  count(({ message }) => message.startsWith('the thread of @nestjs-cluster/shared ended'));
const anyWorker = () => [...workers][Math.floor(Math.random() * workers.size)];
const faults = {
  async 'a worker is killed'() {
    const [slot, pid] = anyWorker();
    process.kill(pid, 'SIGKILL');
    await cluster.until('another worker', () => workers.get(slot) !== pid);
  },
  async 'a worker is stopped'() {
    const [, pid] = anyWorker();
    process.kill(pid, 'SIGSTOP');
    await delay(700);
    process.kill(pid, 'SIGCONT');
  },
  async 'the primary is stopped'() {
    cluster.child.kill('SIGSTOP');
    await delay(700);
    cluster.child.kill('SIGCONT');
  },
  async 'the workers are replaced'() {
    const known = reloads();
    cluster.child.kill('SIGHUP');
    await cluster.until('the end of the reload', () => reloads() > known, 60_000);
  },
  async 'the hub ends'() {
    const known = hubEnds();
    const call = now();
    cluster.child.kill('SIGURG');
    await cluster.until('another hub', () => hubEnds() > known);
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
let code;
try {
  await cluster.until('all workers', () => workers.size === 4, 60_000);
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
  code = await cluster.stop();
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
if (code !== 0) console.log(`the cluster ended with ${code}\n${cluster.output()}`);
process.exitCode = checked.status === 0 && code === 0 ? 0 : 1;
