import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { hasVariable, readProcesses, readStat, signal } from '../bench/process-table.mjs';

const LOOK_MS = 25;
const ADMIN_MS = 3_000;
/** Longer than a hung worker may go on. */
const LONG_MS = 10_000;
const GONE_MS = 5_000;
const MEGABYTE = 2 ** 20;
/** Maximum number of lines kept: more than an hour's. Beyond it the oldest are dropped. */
const LINES_KEPT = 200_000;

/** Short times, so that many faults fit in a minute. */
const OPTIONS = {
  host: '127.0.0.1',
  readyTimeoutMs: 60_000,
  hangTimeoutMs: 5_000,
  // Far above what the app needs. The leaks of faults.mjs go beyond one or both.
  memory: { softLimitBytes: 400 * MEGABYTE, hardLimitBytes: 650 * MEGABYTE },
};

/** The cluster under test, seen from outside: its processes, its log, its admin listener. */
export class Cluster {
  /** Resolves with `{ code, signal }`. */
  exited;
  exit;
  /** The newest lines of its log, `{ at, text, event }`. */
  lines = [];
  /** The event `listening`. */
  #listening;
  /** Ends of workers, `{ pid, at, fault, allowedAt }`; the last two where a fault was to kill it. */
  deaths = [];
  #marker = `CHAOS_MARKER=${randomUUID()}`;
  #child;
  #alive = new Set();
  #mayLose = new Map();
  #looking;
  #restFile;

  constructor({ node, adapter, workers }, directory, script) {
    this.#restFile = join(directory, 'rest.json');
    const options = { ...OPTIONS, port: 0, workers, admin: { port: 0, token: false } };
    const [name, value] = this.#marker.split('=');
    this.#child = spawn(node, [script], {
      cwd: directory,
      stdio: ['ignore', 'pipe', 'pipe'],
      // Out of reach of the terminal's Ctrl-C: the run ends it.
      detached: true,
      env: {
        PATH: process.env.PATH,
        XDG_RUNTIME_DIR: directory, // the control socket
        [name]: value,
        CLUSTER_LOG_FORMAT: 'json',
        CLUSTER_LOG_LEVEL: 'debug', // a line for each event
        CHAOS_OPTIONS: JSON.stringify(options),
        CHAOS_ADAPTER: adapter,
        CHAOS_REST: this.#restFile,
      },
    });
    for (const input of [this.#child.stdout, this.#child.stderr]) {
      createInterface({ input }).on('line', (line) => this.#read(line));
    }
    this.exited = new Promise((resolve) => {
      this.#child.once('exit', (code, signalName) =>
        resolve((this.exit = { code, signal: signalName, at: Date.now() })),
      );
    });
    this.#looking = setInterval(() => this.look(), LOOK_MS);
  }

  get pid() {
    return this.#child.pid;
  }

  get port() {
    return Number(new URL(this.#listening.url).port);
  }

  /** Live workers, the oldest first. */
  get workerPids() {
    return [...this.#alive];
  }

  /** From now on this worker may die of a fault, and lose what it has begun. */
  allowLoss(pid, fault) {
    this.#mayLose.set(pid, { fault, allowedAt: Date.now() });
  }

  mayLose(pid) {
    return this.#mayLose.has(pid);
  }

  /** Sees who has come and who has died. */
  look() {
    const alive = new Set(liveChildrenOf(this.pid));
    for (const pid of this.#alive) {
      if (!alive.has(pid)) this.deaths.push({ pid, at: Date.now(), ...this.#mayLose.get(pid) });
    }
    this.#alive = alive;
  }

  signal(name) {
    signal(this.pid, name);
  }

  /** The text of a page of the admin listener, on a connection of its own. */
  async admin(path) {
    return fetchText({ port: new URL(this.#listening.adminUrl).port, path }, ADMIN_MS);
  }

  /** A request to the app that is none of the clients'. */
  app(path, agent) {
    return fetchText({ port: this.port, path, agent }, LONG_MS);
  }

  /** The cluster's part of `/health`; undefined without an answer. */
  async report() {
    try {
      return JSON.parse((await this.admin('/health')).body).details.cluster;
    } catch {
      return undefined;
    }
  }

  /** Resources of the primary. Compare only samples that were taken while it was at rest. */
  async sample() {
    rmSync(this.#restFile, { force: true });
    this.signal('SIGUSR2');
    for (let tries = 0; !existsSync(this.#restFile) && tries < 40; tries++) await delay(25);
    const status = readFileSync(`/proc/${this.pid}/status`, 'utf8');
    return {
      descriptors: readdirSync(`/proc/${this.pid}/fd`).length,
      residentBytes: Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)[1]) * 1_024,
      ...(existsSync(this.#restFile) && JSON.parse(readFileSync(this.#restFile, 'utf8'))),
    };
  }

  /** Asks the cluster to end. Resolves with its exit, or with undefined after `timeoutMs`. */
  async stop(timeoutMs) {
    this.signal('SIGTERM');
    const timer = new AbortController();
    const late = delay(timeoutMs, undefined, { signal: timer.signal }).catch(() => {});
    const exit = await Promise.race([this.exited, late]);
    timer.abort();
    return exit;
  }

  /** Pids of its processes that outlive it. */
  async orphans() {
    const deadline = Date.now() + GONE_MS;
    for (;;) {
      const left = this.#processes();
      if (left.length === 0 || Date.now() > deadline) return left;
      await delay(50);
    }
  }

  /** Ends whatever of it there still is. */
  async destroy() {
    clearInterval(this.#looking);
    for (const pid of this.#processes()) signal(pid, 'SIGKILL');
    await this.exited;
  }

  #processes() {
    return [...readProcesses().keys()].filter((pid) => hasVariable(pid, this.#marker));
  }

  #read(line) {
    const event = line.startsWith('{"time"') ? JSON.parse(line) : undefined;
    if (event?.event === 'listening') this.#listening = event;
    this.lines.push({ at: Date.now(), text: event?.message ?? line, event });
    if (this.lines.length > LINES_KEPT) this.lines.shift();
  }
}

/** Pids of the live processes that a process has started. A zombie has ended. */
function liveChildrenOf(pid) {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
    return children
      .split(' ')
      .map(Number)
      .filter((child) => child > 0 && !/[ZX]/.test(readStat(child)?.[0] ?? 'X'));
  } catch {
    return []; // the process has ended
  }
}

function fetchText({ agent = false, ...to }, timeoutMs) {
  return new Promise((resolve, reject) => {
    const late = AbortSignal.timeout(timeoutMs);
    const options = { host: '127.0.0.1', agent, signal: late, ...to };
    const request = http.get(options, (response) => {
      const { statusCode: status, headers } = response;
      let body = '';
      response.setEncoding('utf8').on('data', (chunk) => (body += chunk));
      response.on('error', reject);
      response.on('end', () => {
        const pid = Number(headers['x-worker']);
        resolve({ status, body, pid, last: headers.connection === 'close' });
      });
    });
    request.on('error', (error) =>
      reject(late.aborted ? new Error(`no answer in ${timeoutMs} ms`) : error),
    );
  });
}
