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

/** Resolves once `url` answers 200 `times` times in a row. */
export async function answering(url, times = 20, timeoutMs = 20_000) {
  const { port, pathname, search } = new URL(url);
  const deadline = performance.now() + timeoutMs;
  for (let count = 0; count < times;) {
    if (performance.now() > deadline) throw new Error(`${url} does not answer`);
    const ok = await ask(port, pathname + search, timeoutMs).then(
      () => true,
      () => false,
    );
    count = ok ? count + 1 : 0;
    if (!ok) await delay(PAUSE_MS);
  }
}

/** The process that answered. */
export async function whoami(port) {
  const { pid } = JSON.parse(await ask(port, '/whoami'));
  return pid;
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
    const pid = await whoami(port).catch(() => undefined);
    if (pid !== undefined && counts(pid)) pids.add(pid);
    if (pids.size >= count) return performance.now() - startedAt;
    await delay(PAUSE_MS);
  }
  return undefined;
}
