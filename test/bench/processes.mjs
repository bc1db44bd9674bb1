import { spawn } from 'node:child_process';
import http from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { cpuSeconds } from './cpu-time.mjs';
import { withDescendants } from './process-table.mjs';

/** Servers under test, started together and ended by their pids. */
export class Servers {
  #children = [];

  /** Starts one process of a program; its environment chooses what it is. */
  start(node, script, env) {
    const child = spawn(node, [script], {
      stdio: ['ignore', process.env.BENCH_LOG ? 'inherit' : 'ignore', 'inherit'],
      env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    });
    child.ended = new Promise((resolve) => child.once('exit', resolve));
    this.#children.push(child);
  }

  /** Every process that was started, and what they forked. */
  get pids() {
    return [...withDescendants(this.#children.map((child) => child.pid))];
  }

  /** User and system time of all of them so far, in seconds. */
  get cpuSeconds() {
    return cpuSeconds(this.pids);
  }

  async stop() {
    for (const child of this.#children) child.kill('SIGTERM');
    await Promise.all(
      this.#children.map(async (child) => {
        await Promise.race([child.ended, delay(5_000, undefined, { ref: false })]);
        child.kill('SIGKILL');
        await child.ended;
      }),
    );
    this.#children = [];
  }
}

/** Resolves once `url` answers 200 `times` times in a row. */
export async function answering(url, times = 20, timeoutMs = 20_000) {
  const deadline = performance.now() + timeoutMs;
  for (let count = 0; count < times;) {
    if (performance.now() > deadline) throw new Error(`${url} does not answer`);
    const ok = await new Promise((resolve) => {
      const request = http.get(url, { agent: false }, (response) => {
        response.resume().on('end', () => resolve(response.statusCode === 200));
      });
      request.on('error', () => resolve(false));
    });
    count = ok ? count + 1 : 0;
    if (!ok) await delay(50);
  }
}
