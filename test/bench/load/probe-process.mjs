// Asks GET /hello every 50 ms, each time on a new connection, whatever became of the last.
import http from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

const EVERY_MS = 50;
const TIMEOUT_MS = 1_000;

const { port, seconds } = JSON.parse(process.argv[2]);
const probes = [];
for (const end = performance.now() + seconds * 1_000; performance.now() < end;) {
  probes.push(probe());
  await delay(EVERY_MS);
}
const outcomes = await Promise.all(probes);
console.log(
  JSON.stringify({ probes: outcomes.length, failed: outcomes.filter((well) => !well).length }),
);

function probe() {
  return new Promise((resolve) => {
    const options = { host: '127.0.0.1', port, path: '/hello', agent: false };
    const request = http.get(options, (response) => {
      response.resume();
      response.on('error', () => resolve(false));
      response.on('end', () => resolve(response.statusCode === 200));
    });
    const timer = setTimeout(() => request.destroy(new Error('timeout')), TIMEOUT_MS);
    request.on('error', () => resolve(false));
    request.on('close', () => clearTimeout(timer));
  });
}
