// Asks a URL without pause, and prints how it went: URL, how many at a time, then `seconds=N` or
// `calls=N`. An answer that takes longer than PATIENCE_MS is none.
import http from 'node:http';

const PATIENCE_MS = 30_000;
const [url, inFlight, until] = process.argv.slice(2);
const [kind, amount] = until.split('=');
const agent = new http.Agent({ keepAlive: true });
const times = [];
const ended = { answered: 0, refused: 0, silent: 0 };

const startedAt = performance.now();
let asked = 0;
const goesOn =
  kind === 'calls'
    ? () => asked < Number(amount)
    : () => performance.now() - startedAt < Number(amount) * 1e3;
await Promise.all(
  Array.from({ length: Number(inFlight) }, async () => {
    while (goesOn()) {
      asked += 1;
      const at = performance.now();
      ended[await ask()] += 1;
      times.push(performance.now() - at);
    }
  }),
);
agent.destroy();
const sorted = times.toSorted((a, b) => a - b);
const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
const seconds = (performance.now() - startedAt) / 1e3;
console.log(
  JSON.stringify({ ...ended, seconds, p50Ms: at(0.5), p99Ms: at(0.99), longestMs: sorted.at(-1) }),
);

function ask() {
  return new Promise((resolve) => {
    const request = http.get(url, { agent, timeout: PATIENCE_MS }, (response) => {
      response
        .resume()
        .on('end', () => resolve(response.statusCode === 200 ? 'answered' : 'refused'));
    });
    request.on('timeout', () => {
      resolve('silent');
      request.destroy();
    });
    request.on('error', () => resolve('refused'));
  });
}
