import { runClient } from './client.mjs';

const WARM_UPS = 3;
const MS = { us: 1e-3, ms: 1, s: 1e3, m: 6e4 };

/**
 * Loads a path by wrk for some seconds.
 *
 * @returns requests answered well, their rate, latencies in ms, and errors by kind.
 */
export async function wrk(
  target,
  { path, connections = 64, seconds, newConnections = false, timeoutSeconds = 10 },
) {
  const args = [
    '-t1',
    `-c${connections}`,
    `-d${seconds}s`,
    `--timeout=${timeoutSeconds}s`,
    '--latency',
  ];
  if (newConnections) args.push('-H', 'Connection: close');
  const url = `http://127.0.0.1:${target.port}${path}`;
  const text = (await runClient(target, 'wrk', [...args, url])).join('\n');
  const all = Number(/(\d+) requests in/.exec(text)?.[1]);
  const [, connect = 0, read = 0, write = 0, timeout = 0] =
    /Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/.exec(text) ?? [];
  const status = Number(/Non-2xx or 3xx responses: (\d+)/.exec(text)?.[1] ?? 0);
  const counts = { connect, read, write, timeout, status };
  return {
    requests: all - status,
    requestsPerSecond: (all - status) / seconds,
    p50Ms: milliseconds(/^\s+50%\s+(\S+)/m.exec(text)),
    p99Ms: milliseconds(/^\s+99%\s+(\S+)/m.exec(text)),
    maxMs: milliseconds(/^\s+Latency\s+\S+\s+\S+\s+(\S+)/m.exec(text)),
    errors: Object.fromEntries(
      Object.entries(counts).map(([kind, count]) => [kind, Number(count)]),
    ),
  };
}

/**
 * Until V8 has compiled what is hot. Clients come and go some times: what is optimised while none
 * does is given up when the first one leaves, and compiled anew in the middle of the measurement.
 */
export async function warmUp(target, load) {
  for (let time = 0; time < WARM_UPS; time += 1) await wrk(target, { ...load, seconds: 1 });
}

/** "1.02ms" */
function milliseconds([, text] = []) {
  const [, value, unit] = /^([\d.]+)(us|ms|s|m)$/.exec(text ?? '') ?? [];
  return value === undefined ? undefined : Number(value) * MS[unit];
}
