import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';

const FIXTURES = join(import.meta.dirname, '../fixtures');

const running = new Set();
process.once('exit', () => running.forEach((cluster) => cluster.destroy()));

/** A cluster in processes of its own, seen from outside by its log. */
export class Cluster {
  /** Pids of the workers that became ready last, by slot. */
  workers = new Map();
  events = [];
  /** All lines that are not events. */
  lines = [];
  exit;
  /** Its temporary directory, in which the hub's socket is. */
  directory = mkdtempSync(join(tmpdir(), 'suite-'));

  /**
   * @param program the path of the app. Default: test/fixtures/app.mjs.
   * @param app the path of a module with the app's behaviour; see test/fixtures/app.mjs.
   * @param within a command that runs the program.
   */
  constructor({ program = join(FIXTURES, 'app.mjs'), app, options, env, execArgv, within } = {}) {
    const [command, ...args] = [...(within ?? []), process.execPath, ...(execArgv ?? []), program];
    const settings = JSON.stringify({ host: '127.0.0.1', port: 0, workers: 2, ...options });
    this.child = spawn(command, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true, // a process group, so that nothing survives `destroy()`
      env: {
        ...process.env,
        CLUSTER_LOG_FORMAT: 'json',
        CLUSTER_LOG_LEVEL: 'debug',
        XDG_RUNTIME_DIR: this.directory,
        TEST_OPTIONS: settings,
        SAMPLE_OPTIONS: settings,
        ...(app && { BEHAVE: app }),
        ...env,
      },
    });
    running.add(this);
    this.exited = new Promise((resolve) => {
      this.child.once('close', (code, signal) => {
        running.delete(this);
        resolve((this.exit = { code, signal }));
      });
    });
    for (const input of [this.child.stdout, this.child.stderr]) {
      createInterface({ input }).on('line', (line) => this.#hear(line));
    }
  }

  /** Starts a cluster, and waits until all its workers are ready. */
  static async start(settings) {
    const cluster = new Cluster(settings);
    await cluster.ready(settings?.options?.workers ?? 2);
    return cluster;
  }

  async ready(workers) {
    await this.until('listening', () => this.event('listening'));
    await this.until(`${workers} workers`, () => this.workers.size >= workers);
  }

  /** The last event of that name. */
  event(name) {
    return this.events.findLast(({ event }) => event === name);
  }

  get url() {
    return this.event('listening').url;
  }

  get adminUrl() {
    return this.event('listening').adminUrl;
  }

  /** @throws Error if `is` stays false, or if the cluster ends. */
  async until(what, is, ms = 30_000) {
    for (const end = performance.now() + ms; !is(); await delay(10)) {
      if (performance.now() > end) throw new Error(`not in ${ms} ms: ${what}\n${this.output()}`);
      if (this.exit) throw new Error(`the cluster ended before: ${what}\n${this.output()}`);
    }
  }

  output() {
    return [...this.lines, ...this.events.map(({ event, message }) => `${event}: ${message}`)]
      .slice(-20)
      .join('\n');
  }

  /** Ends the cluster as an operator does. @returns its exit code, or the signal that ended it. */
  async stop(ms = 20_000) {
    this.child.kill('SIGTERM');
    const timer = setTimeout(() => this.destroy(), ms);
    const { code, signal } = await this.exited;
    clearTimeout(timer);
    rmSync(this.directory, { recursive: true, force: true });
    return code ?? signal;
  }

  /** Kills all its processes. */
  destroy() {
    try {
      process.kill(-this.child.pid, 'SIGKILL');
    } catch {
      // they have all ended
    }
  }

  #hear(line) {
    if (!line.startsWith('{"time"')) return void this.lines.push(line);
    const event = JSON.parse(line);
    this.events.push(event);
    if (event.event === 'worker-ready') this.workers.set(event.worker, event.pid);
  }
}

/** Starts an app that `serve()` runs, as plain Nest. @returns its port, and what ends it. */
export async function startPlain(program) {
  const plain = spawn(process.execPath, [program], {
    env: { ...process.env, SUITE_PLAIN: '1' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [port] = await once(plain.stdout, 'data');
  return { port: String(port).trim(), stop: () => plain.kill() };
}
