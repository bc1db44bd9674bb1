// A client that repeats fatal requests while other clients send normal requests:
//
//   node test/chaos/fatal-requests.mjs --kinds reject,timer,loop,heap --seconds 600 --workers 2
//
// Prints how many workers ended, what the other clients lost, and whether all workers are ready a
// minute later (--rest, in seconds). Exit code 1 if a check fails. Runs the build that the last run
// of the process tests has put into the folder of the fixtures.
import { spawn } from 'node:child_process';
import http from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    kinds: { type: 'string', default: 'reject,timer,loop,heap' },
    workers: { type: 'string', default: '2' },
    seconds: { type: 'string', default: '120' },
    rest: { type: 'string', default: '60' },
    fatal: { type: 'string', default: '5' },
    others: { type: 'string', default: '200' },
    adapter: { type: 'string', default: 'express' },
    losses: { type: 'boolean', default: false },
  },
});
const kinds = values.kinds.split(',');
const workers = Number(values.workers);
const fixtures = join(import.meta.dirname, '../fixtures');

const began = performance.now();
const events = [];
let url;
const cluster = spawn(process.execPath, [join(fixtures, 'app.mjs')], {
  env: {
    ...process.env,
    NODE_OPTIONS: '--max-old-space-size=64',
    CLUSTER_LOG_FORMAT: 'json',
    TEST_ADAPTER: values.adapter,
    TEST_APP: join(fixtures, 'behaviours/fatal.mjs'),
    TEST_OPTIONS: JSON.stringify({
      port: 0,
      host: '127.0.0.1',
      workers,
      control: false,
      heartbeat: { intervalMs: 500, timeoutMs: 1_500 },
    }),
  },
  stdio: ['ignore', 'pipe', 'pipe'],
});
const hear = (line) => {
  if (!line.startsWith('{"')) return;
  const event = JSON.parse(line);
  events.push({ ...event, heardMs: performance.now() - began });
  if (event.event === 'started') url = event.url;
  if (event.event?.startsWith('quarantine')) console.log(event.message);
};
// The error log is on a stream of its own.
createInterface(cluster.stdout).on('line', hear);
createInterface(cluster.stderr).on('line', hear);
let exit;
cluster.once('exit', (code, signal) => (exit = { code, signal }));
process.once('exit', () => cluster.kill('SIGKILL'));
while (url === undefined && exit === undefined) await delay(50);

const agent = new http.Agent({ keepAlive: true });

/** @returns how it ended, with what is needed to explain a loss. */
function ask(path, kept) {
  return new Promise((resolve) => {
    const sentMs = performance.now() - began;
    const request = http.get(`${url}${path}`, { agent: kept ? agent : false, timeout: 15_000 });
    const ended = (status) => {
      const tookMs = performance.now() - began - sentMs;
      resolve({ status, path, sentMs, tookMs, reused: request.reusedSocket });
    };
    request.on('response', (response) => {
      response.resume();
      response.on('end', () => ended(response.statusCode)).on('error', () => ended('cut off'));
    });
    request.on('timeout', () => request.destroy(new Error('no answer')));
    request.on('error', ({ code, message }) => ended(code ?? message));
  });
}

/** Requests at a constant rate, whatever becomes of those before. Resolves once each has ended. */
async function steadily(perSecond, pathOf, seconds) {
  const counts = {};
  const lost = [];
  const running = new Set();
  const count = (ended) => {
    counts[ended.status] = (counts[ended.status] ?? 0) + 1;
    if (ended.status !== 200) lost.push(ended);
  };
  const from = performance.now();
  let sent = 0;
  for (let elapsed = 0; elapsed < seconds; elapsed = (performance.now() - from) / 1_000) {
    for (; sent < elapsed * perSecond; sent += 1) {
      const asked = ask(pathOf(sent), sent % 2 === 0).then(count);
      running.add(asked);
      void asked.then(() => running.delete(asked));
    }
    await delay(10);
  }
  await Promise.all(running);
  return { sent, counts, lost };
}

const seconds = Number(values.seconds);
const wellPaths = ['/hello', '/whoami', '/wait/5', ...kinds.map((kind) => `/fatal/${kind}/good`)];
const [fatal, others] = await Promise.all([
  steadily(Number(values.fatal), (n) => `/fatal/${kinds[n % kinds.length]}/bad`, seconds),
  steadily(Number(values.others), (n) => wellPaths[n % wellPaths.length], seconds),
]);
const deaths = new Map(
  events
    .filter(({ event }) => event === 'worker-died' || event === 'worker-failing')
    .map(({ pid, heardMs, cause }) => [pid, { atMs: heardMs, cause: cause ?? 'crash' }]),
);
await delay(Number(values.rest) * 1_000);
const whole = await new Promise((resolve) => {
  http
    .get(`${url}/health`, (response) => {
      let text = '';
      response.on('data', (chunk) => (text += chunk));
      response.on('end', () => resolve(JSON.parse(text).details.cluster));
    })
    .on('error', () => resolve(undefined));
});
const lostShare = others.lost.length / others.sent;
if (values.losses) {
  const line = (atMs, text) => ({ atMs, text: `${(atMs / 1_000).toFixed(2)} s: ${text}` });
  const lines = [
    ...[...deaths].map(([pid, { atMs, cause }]) => line(atMs, `worker ${pid} ended: ${cause}`)),
    ...others.lost.map(({ status, path, sentMs, tookMs, reused }) =>
      line(
        sentMs + tookMs,
        `lost ${path}: ${status}, ${Math.round(tookMs)} ms after it was sent on a ${reused ? 'used' : 'new'} connection`,
      ),
    ),
  ];
  for (const { text } of lines.sort((one, other) => one.atMs - other.atMs)) console.log(text);
}
console.log(
  JSON.stringify({
    kinds,
    workers,
    seconds,
    adapter: values.adapter,
    deaths: deaths.size,
    causes: [...deaths.values()].map(({ cause }) => cause),
    fatal: fatal.counts,
    others: others.counts,
    lostShare,
    ready: whole?.ready,
    exit,
  }),
);
const holds = exit === undefined && whole?.ready === workers && lostShare <= 0.01;
cluster.kill('SIGKILL');
process.exitCode = holds ? 0 : 1;
