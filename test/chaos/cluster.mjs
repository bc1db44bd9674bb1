import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import * as processes from './process-table.mjs';

const LOOK_MS = 25;
const ADMIN_MS = 3_000;
/** Longer than a hung worker may go on. */
const LONG_MS = 10_000;
const GONE_MS = 5_000;
const MEGABYTE = 2 ** 20;

/** Far above what the app needs; the leaks of faults/worker-faults.mjs go beyond one or both. */
const SOFT_LIMIT_BYTES = 400 * MEGABYTE;
const HARD_LIMIT_BYTES = 650 * MEGABYTE;

/** The faults are the run's own: they are not to make a crash loop. Short times: many fit in a minute. */
const OPTIONS = {
  host: '127.0.0.1',
  readyTimeoutMs: 60_000,

  hangTimeoutMs: 5_000,
  memory: { softLimitBytes: SOFT_LIMIT_BYTES, hardLimitBytes: HARD_LIMIT_BYTES },
};

/** Ends the hub's thread at SIGURG. */
const HUB_THREAD = new URL('../fixtures/preload/hub-thread.mjs', import.meta.url).href;

/** The cluster under test, seen from outside: its processes, its admin listener. */
export class Cluster {
  marker = `CHAOS_MARKER=${randomUUID()}`;
  port;
  rpcPort;
  /** Resolves with `{ code, signal }`. */
  exited;
  exit;
  /** Ends of workers, `{ pid, at, fault, doomedAt }`; the last two where a fault was to kill it. */
  deaths = [];
  controlPath;
  #adminPort;
  #child;
  #alive = new Set();
  #doomed = new Map();
  #looking;
  #restFile;
  #clockFile;

  constructor({ node, adapter, workers, rpc, clock }, directory, script, log, ports) {
    [this.port, this.#adminPort, this.rpcPort] = ports;
    this.#restFile = join(directory, 'rest.json');
    this.#clockFile = join(directory, 'clock');
    this.controlPath = join(directory, 'control');
    this.setClock(0);
    const options = {
      ...OPTIONS,
      port: this.port,
      workers,
      admin: { port: this.#adminPort },
      control: { path: this.controlPath },
    };
    const [name, value] = this.marker.split('=');
    this.#child = spawn(node, ['--import', HUB_THREAD, script], {
      cwd: directory,
      stdio: ['ignore', log.descriptor, log.descriptor],
      // Out of reach of the terminal's Ctrl-C: the run ends it.
      detached: true,
      env: {
        PATH: process.env.PATH,
        XDG_RUNTIME_DIR: directory, // the hub's socket
        [name]: value,
        CLUSTER_LOG_FORMAT: 'json',
        CLUSTER_LOG_LEVEL: 'debug', // a line for each event
        CHAOS_OPTIONS: JSON.stringify(options),
        CHAOS_ADAPTER: adapter,
        CHAOS_FAULTS: '1',
        CHAOS_REST: this.#restFile,
        ...(rpc && { CHAOS_RPC_PORT: String(this.rpcPort) }),
        ...(clock && {
          LD_PRELOAD: clock,
          FAKETIME_TIMESTAMP_FILE: this.#clockFile,
          FAKETIME_CACHE_DURATION: '1',
          FAKETIME_DONT_FAKE_MONOTONIC: '1',
        }),
      },
    });
    this.exited = new Promise((resolve) => {
      this.#child.once('exit', (code, signal) =>
        resolve((this.exit = { code, signal, at: Date.now() })),
      );
    });
    this.#looking = setInterval(() => this.look(), LOOK_MS);
  }

  get pid() {
    return this.#child.pid;
  }

  /** Live workers, the oldest first. */
  get workerPids() {
    return [...this.#alive];
  }

  /** From now on this worker may die of a fault. */
  doom(pid, fault) {
    this.#doomed.set(pid, { fault, doomedAt: Date.now() });
  }

  /** A worker that has not died of its fault. */
  spare(pid) {
    this.look();
    if (this.#alive.has(pid)) this.#doomed.delete(pid);
  }

  isDoomed(pid) {
    return this.#doomed.has(pid);
  }

  /** Sees who has come and who has died. */
  look() {
    const alive = new Set(processes.liveChildrenOf(this.pid));
    for (const pid of this.#alive) {
      if (!alive.has(pid)) this.deaths.push({ pid, at: Date.now(), ...this.#doomed.get(pid) });
    }
    this.#alive = alive;
  }

  /** The wall clock of every process of it. */
  setClock(offsetSeconds) {
    writeFileSync(this.#clockFile, `${offsetSeconds < 0 ? '' : '+'}${offsetSeconds}s\n`);
  }

  signal(name) {
    processes.signal(this.pid, name);
  }

  /** The text of a page of the admin listener, on a connection of its own. */
  admin(path) {
    return fetchText({ port: this.#adminPort, path }, ADMIN_MS);
  }

  /** A request to the app that is none of the clients'. */
  app(path, agent, body) {
    return fetchText({ port: this.port, path, agent, body }, LONG_MS);
  }

  /** Asks the control socket. */
  control(path) {
    return fetchText(
      { socketPath: this.controlPath, path, headers: { host: 'localhost' } },
      ADMIN_MS,
    );
  }

  /** The cluster's part of `/health`; undefined where nobody answers. */
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
    return {
      descriptors: processes.descriptorsOf(this.pid).length,
      residentBytes: processes.residentBytesOf(this.pid),
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
      const left = processes.marked(this.marker);
      if (left.length === 0 || Date.now() > deadline) return left;
      await delay(50);
    }
  }

  /** Ends whatever of it there still is. */
  async destroy() {
    clearInterval(this.#looking);
    for (const pid of processes.marked(this.marker)) processes.signal(pid, 'SIGKILL');
    await this.exited;
    // libfaketime leaves these of processes that were killed.
    const seen = new Set([this.pid, ...this.deaths.map(({ pid }) => pid)].map(String));
    for (const name of readdirSync('/dev/shm')) {
      const pid = /^(?:sem\.)?faketime_(?:sem|shm)_(\d+)$/.exec(name)?.[1];
      if (seen.has(pid)) rmSync(join('/dev/shm', name), { force: true });
    }
  }
}

/** @param body of a POST; without one it is a GET. */
function fetchText({ agent = false, body: sent, ...to }, timeoutMs) {
  const method = sent === undefined ? 'GET' : 'POST';
  return new Promise((resolve, reject) => {
    const request = http.request({ host: '127.0.0.1', method, agent, ...to }, (response) => {
      const { statusCode: status, headers } = response;
      let body = '';
      response.setEncoding('utf8').on('data', (chunk) => (body += chunk));
      response.on('end', () => {
        clearTimeout(timer);
        const pid = Number(headers['x-worker']);
        resolve({ status, body, pid, last: headers.connection === 'close' });
      });
      response.on('error', reject);
    });
    const timer = setTimeout(
      () => request.destroy(new Error(`no answer in ${timeoutMs} ms`)),
      timeoutMs,
    );
    request.on('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    request.end(sent);
  });
}
