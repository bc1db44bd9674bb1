import net from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { quantile } from '../statistics.mjs';
import { measureApart } from './client.mjs';

const EVERY_MS = 10;

/** Longest wait for the last answers. */
const LAST_MS = 10_000;

/**
 * Asks a light route, in a process of its own, every 10 ms, whatever the last answer does: on kept
 * connections, one for each request that is not answered yet. Parses next to
 * nothing: a probe should cost the machine next to nothing.
 *
 * @returns what the answers took, in ms; a request that has none at the end counts by its age.
 */
export function probeApart(target, parameters) {
  return measureApart(target, 'light-route', parameters);
}

export async function measure({ port, path, seconds }) {
  const request = `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`;
  const idle = [];
  const times = [];
  const waiting = new Set();
  const ask = () => {
    const socket = idle.pop() ?? connect(port, idle);
    const startedAt = performance.now();
    waiting.add(startedAt);
    socket.answered = () => {
      waiting.delete(startedAt);
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
  for (let waited = 0; waiting.size > 0 && waited < LAST_MS; waited += 50) await delay(50);
  const now = performance.now();
  const all = [...times, ...[...waiting].map((startedAt) => now - startedAt)];
  return {
    lightP50Ms: quantile(all, 0.5),
    lightP99Ms: quantile(all, 0.99),
    lightMaxMs: Math.max(...all),
    lightUnanswered: waiting.size,
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
  // The server closes what was idle for long.
  socket.on('close', () => {
    const place = idle.indexOf(socket);
    if (place !== -1) idle.splice(place, 1);
  });
  return socket;
}
