import http from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

const PAUSE_MS = 20;

/** The body of an answer to GET with 200, asked on a connection of its own. */
export function ask(port, path, timeoutMs = 1_000) {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path, agent: false, timeout: timeoutMs };
    const request = http.get(options, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (chunk) => (body += chunk));
      response.on('error', reject);
      response.on('end', () => {
        if (response.statusCode === 200) resolve(body);
        else reject(new Error(`${path} answered ${response.statusCode}`));
      });
    });
    request.on('timeout', () => request.destroy(new Error('timeout')));
    request.on('error', reject);
  });
}

/**
 * Waits until so many processes that satisfy `counts` have answered.
 *
 * @returns the time that took, in ms; undefined where they have not within `timeoutMs`.
 */
export async function answeredBy(port, count, counts, timeoutMs) {
  const startedAt = performance.now();
  const pids = new Set();
  while (performance.now() - startedAt < timeoutMs) {
    const pid = await ask(port, '/whoami').then(
      (body) => JSON.parse(body).pid,
      () => undefined,
    );
    if (pid !== undefined && counts(pid)) pids.add(pid);
    if (pids.size >= count) return performance.now() - startedAt;
    await delay(PAUSE_MS);
  }
  return undefined;
}
