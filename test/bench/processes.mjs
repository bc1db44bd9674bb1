import { execFileSync, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import http from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

const TICKS_PER_SECOND = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));

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
    const parents = new Map();
    for (const name of readdirSync('/proc')) {
      if (!/^\d+$/.test(name)) continue;
      const stat = readStat(name);
      if (stat) parents.set(Number(name), Number(stat[1]));
    }
    const found = new Set(this.#children.map((child) => child.pid));
    for (let size = 0; size !== found.size;) {
      size = found.size;
      for (const [pid, parent] of parents) if (found.has(parent)) found.add(pid);
    }
    return [...found];
  }

  /** User and system time of all of them so far, in seconds. */
  get cpuSeconds() {
    return this.pids.reduce((sum, pid) => {
      const stat = readStat(pid);
      // Fields 14 and 15 of proc(5), counted from the state, which is field 3.
      return sum + (stat ? (Number(stat[11]) + Number(stat[12])) / TICKS_PER_SECOND : 0);
    }, 0);
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

/** The fields of /proc/<pid>/stat behind the command's name: state, ppid, … */
function readStat(pid) {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
  } catch {
    return undefined; // ended meanwhile
  }
}
