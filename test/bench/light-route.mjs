import net from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

const EVERY_MS = 10;

/** Longest wait for the last answers. */
const LAST_MS = 10_000;

/**
 * Asks a light route every 10 ms, whatever the last answer does: on kept
 * connections, one for each request that is not answered yet. Parses next to
 * nothing: a probe should cost the machine next to nothing.
 *
 * @returns what the answers took, in ms, sorted.
 */
export async function probe(port, path, seconds) {
  const request = `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`;
  const idle = [];
  const times = [];
  let unanswered = 0;
  const ask = () => {
    const socket = idle.pop() ?? connect(port, idle);
    const startedAt = performance.now();
    unanswered += 1;
    socket.answered = () => {
      unanswered -= 1;
      times.push(performance.now() - startedAt);
    };
    socket.write(request);
  };
  const end = performance.now() + seconds * 1_000;
  for (let next = performance.now(); next < end; next += EVERY_MS) {
    const wait = next - performance.now();
    if (wait > 0) await delay(wait);
    ask();
  }
  for (let waited = 0; unanswered > 0 && waited < LAST_MS; waited += 50) await delay(50);
  for (const socket of idle) socket.destroy();
  times.sort((a, b) => a - b);
  const quantile = (q) => times[Math.min(times.length - 1, Math.floor(q * times.length))];
  return {
    answered: times.length,
    unanswered,
    p50: quantile(0.5),
    p99: quantile(0.99),
    max: times.at(-1),
  };
}

function connect(port, idle) {
  const socket = net.connect(port, '127.0.0.1').setNoDelay();
  let closes = false;
  socket.on('data', (chunk) => {
    closes = /connection: close/i.test(chunk.toString('latin1'));
    socket.answered?.();
    socket.answered = undefined;
    // The answer is small: it comes in one piece.
    if (closes) socket.destroy();
    else idle.push(socket);
  });
  socket.on('error', () => {});
  return socket;
}
