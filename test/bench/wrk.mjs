import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * Loads `url` by wrk for some seconds.
 *
 * @returns requests answered, their rate, and errors of all kinds.
 */
export async function wrk(url, { connections = 64, seconds, newConnections = false }) {
  const args = ['-t1', `-c${connections}`, `-d${seconds}s`];
  if (newConnections) args.push('-H', 'Connection: close');
  const { stdout } = await run('wrk', [...args, url]).catch((error) => {
    if (error.code === 'ENOENT') throw new Error('wrk is missing: apt-get install wrk');
    throw error;
  });
  const requests = Number(/(\d+) requests in/.exec(stdout)?.[1]);
  const [, connect = 0, read = 0, write = 0, timeout = 0] =
    /Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/.exec(stdout) ?? [];
  const badStatus = Number(/Non-2xx or 3xx responses: (\d+)/.exec(stdout)?.[1] ?? 0);
  const errors = Number(connect) + Number(read) + Number(write) + Number(timeout) + badStatus;
  return { requests, requestsPerSecond: requests / seconds, errors };
}
