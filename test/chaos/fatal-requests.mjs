// A client that repeats fatal requests beside others that are well:
//
//   node test/chaos/fatal-requests.mjs --kinds reject,timer,loop,heap --seconds 600 --workers 2
//
// Prints how many workers ended, what the others lost, and whether the cluster is whole a minute
// later (--rest, in seconds). Exit code 1 if it does not hold. It runs the build that the last run of
// process tests has put beside the fixtures.
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
  },
});
const kinds = values.kinds.split(',');
const workers = Number(values.workers);
const fixtures = join(import.meta.dirname, '../fixtures');

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
  events.push(event);
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
function ask(path, kept) {
  return new Promise((resolve) => {
    const began = performance.now();
    const request = http.get(`${url}${path}`, { agent: kept ? agent : false, timeout: 15_000 });
    request.on('response', (response) => {
      response.resume();
      const took = () => resolve({ status: response.statusCode, ms: performance.now() - began });
      response.on('end', took).on('error', () => resolve({ status: 'reset' }));
    });
    request.on('timeout', () => request.destroy());
    request.on('error', ({ code }) => resolve({ status: code }));
  });
}

/** @returns how often each status came, once all have. */
function steadily(perSecond, pathOf, seconds) {
  const counts = {};
  const running = [];
  const began = performance.now();
  return new Promise((resolve) => {
    let sent = 0;
    const timer = setInterval(() => {
      const elapsed = (performance.now() - began) / 1_000;
      if (elapsed >= seconds) {
        clearInterval(timer);
        void Promise.all(running).then(() => resolve(counts));
        return;
      }
      for (; sent < elapsed * perSecond; sent += 1) {
        const asked = ask(pathOf(sent), sent % 2 === 0).then(({ status }) => {
          counts[status] = (counts[status] ?? 0) + 1;
        });
        running.push(asked);
        if (running.length > 1_000) running.splice(0, 500);
      }
    }, 10);
  });
}

const seconds = Number(values.seconds);
const wellPaths = ['/hello', '/whoami', '/wait/5', ...kinds.map((kind) => `/fatal/${kind}/good`)];
const [fatal, others] = await Promise.all([
  steadily(Number(values.fatal), (n) => `/fatal/${kinds[n % kinds.length]}/bad`, seconds),
  steadily(Number(values.others), (n) => wellPaths[n % wellPaths.length], seconds),
]);
const dead = new Set(
  events
    .filter(({ event }) => event === 'worker-died' || event === 'worker-failing')
    .map(({ pid }) => pid),
);
const causes = {};
for (const { event, cause } of events) {
  if (event === 'worker-died') causes[cause] = (causes[cause] ?? 0) + 1;
}
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
const sent = Object.values(others).reduce((sum, count) => sum + count, 0);
const lost = sent - (others[200] ?? 0);
const result = {
  kinds,
  workers,
  seconds,
  deaths: dead.size,
  causes,
  fatal,
  others,
  lostShare: lost / sent,
  ready: whole?.ready,
  exit,
};
console.log(JSON.stringify(result));
const holds = exit === undefined && whole?.ready === workers && lost / sent <= 0.01;
cluster.kill('SIGKILL');
process.exitCode = holds ? 0 : 1;
