import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { ClusterEventName, ClusterOptions } from 'nestjs-cluster';
import { hasVariable, readProcesses } from '../bench/process-table.mjs';
import { eventually } from './eventually.js';
import { PATIENCE_MS } from './patience.js';
import { Waiters } from './waiters.js';

const root = join(import.meta.dirname, '../..');

/** Programs to start, as paths. */
export const PROGRAMS = {
  /** A small app whose behaviour the environment chooses; see the file. */
  app: join(root, 'test/fixtures/app.mjs'),
  /** The same on Nest 11. */
  nest11: join(root, 'test/fixtures/nest-11/app.mjs'),
  /** An app without Nest, whose workers are ready within a moment. */
  bare: join(root, 'test/fixtures/bare.mjs'),
  /** The sample app with the bundles of the fixtures: it starts with less than half of the CPU time. */
  sample: join(root, 'test/fixtures/sample-app/dist/main.js'),
  /** The sample app with the packages that are installed. */
  installedSample: join(root, 'sample-app/dist/main.js'),
} as const;

/** The Node under test: `TEST_NODE` names another than the one that runs vitest. */
export const NODE = process.env['TEST_NODE'] ?? process.execPath;

/** One line of the log in its JSON format. */
export interface LogLine {
  readonly event: ClusterEventName;
  readonly level: string;
  readonly message: string;
  readonly worker?: number;
  readonly gen?: number;
  readonly pid?: number;
  readonly [key: string]: unknown;
}

export interface StartOptions {
  /** A name of {@link PROGRAMS}, or a path. Default `app`. */
  readonly program?: keyof typeof PROGRAMS | (string & {});
  /** Options of the fixtures' `bootstrap()`. Defaults: `port` 0, `host` 127.0.0.1, `workers` 2. */
  readonly options?: ClusterOptions;
  readonly env?: Readonly<Record<string, string>>;
  readonly execArgv?: readonly string[];
  readonly cwd?: string;
  /** Default {@link NODE}. */
  readonly node?: string;
  /** Arguments of the program. */
  readonly args?: readonly string[];
  /** Descriptors of this process that the program gets, from 3 on. */
  readonly descriptors?: readonly number[];
  /** A command that runs the program: `['setpriv', '--reuid=65534']`. */
  readonly within?: readonly string[];
}

/** How a started program ended. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const running = new Set<ClusterProcess>();

/** Ends everything that was started. Call it in `afterEach`. */
export async function stopAll(): Promise<void> {
  await Promise.all([...running].map((cluster) => cluster.destroy()));
}

/** A program in processes of its own, seen from outside: its log, its exit, its pids. */
export class ClusterProcess {
  readonly marker = randomUUID();
  readonly child: ChildProcess;
  readonly exit: Promise<Exit>;
  readonly lines: LogLine[] = [];
  /** Everything it wrote, to show when a test fails. */
  output = '';
  readonly #waiters = new Waiters();
  /** It has ended, and everything it wrote has been read. */
  #closed = false;

  /** Starts a program and does not wait for anything. */
  constructor({
    program = 'app',
    options = {},
    env = {},
    execArgv = [],
    cwd = root,
    node = NODE,
    args: ownArgs = [],
    descriptors = [],
    within = [],
  }: StartOptions = {}) {
    const path = program in PROGRAMS ? PROGRAMS[program as keyof typeof PROGRAMS] : program;
    const bootstrapOptions = { host: '127.0.0.1', port: 0, workers: 2, ...options };
    const [command, ...args] = [...within, node, ...execArgv, path, ...ownArgs];
    this.child = spawn(command!, args, {
      cwd,
      stdio: ['ignore', 'pipe', 'pipe', ...descriptors],
      env: {
        PATH: process.env['PATH'],
        HOME: process.env['HOME'],
        CLUSTER_LOG_FORMAT: 'json',
        // A line of each event, and every line of every worker.
        CLUSTER_LOG_LEVEL: options.log?.level ?? 'debug',
        TEST_MARKER: this.marker,
        TEST_OPTIONS: JSON.stringify(options.path ? options : bootstrapOptions),
        SAMPLE_OPTIONS: JSON.stringify(options.path ? options : bootstrapOptions),
        ...env,
      },
    });
    this.exit = new Promise((resolve) => {
      // 'close', not 'exit': by then everything it wrote has been read.
      this.child.once('close', (code, signal) => {
        this.#closed = true;
        resolve({ code, signal });
        this.#waiters.look();
      });
    });
    for (const stream of [this.child.stdout!, this.child.stderr!]) {
      let rest = '';
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        rest = this.#read(chunk, rest);
      });
    }
    running.add(this);
  }

  /** Starts a program and waits until all its workers are ready. */
  static async start(start: StartOptions = {}): Promise<ClusterProcess> {
    const cluster = new ClusterProcess(start);
    const workers = start.options?.workers ?? 2;
    await cluster.event('listening');
    if (typeof workers === 'number' && workers > 0) {
      await cluster.until(
        `${workers} ready workers`,
        () => cluster.all('worker-ready').length >= workers,
      );
    }
    return cluster;
  }

  get pid(): number {
    return this.child.pid!;
  }

  /** The URL that the cluster listens on, from its `listening` event. */
  get url(): string {
    return String(this.all('listening')[0]?.['url']);
  }

  /** The URL of its admin listener. */
  get adminUrl(): string {
    return String(this.all('listening')[0]?.['adminUrl']);
  }

  all(event: ClusterEventName): LogLine[] {
    return this.lines.filter((line) => line.event === event);
  }

  /** Pids of workers that became ready and have not ended, by slot. */
  get workerPids(): number[] {
    const ended = new Set(
      [...this.all('worker-died'), ...this.all('worker-stopped')].map((line) => line.pid),
    );
    return this.all('worker-ready')
      .filter((line) => !ended.has(line.pid))
      .sort((a, b) => a.worker! - b.worker!)
      .map((line) => line.pid!);
  }

  /** Resolves with the first line of an event that matches, past or to come. */
  async event(
    event: ClusterEventName,
    matches: (line: LogLine) => boolean = () => true,
    timeoutMs = PATIENCE_MS,
  ): Promise<LogLine> {
    const find = () => this.all(event).find(matches);
    await this.until(`event '${event}'`, () => find() !== undefined, timeoutMs);
    return find()!;
  }

  /** Resolves once `condition` holds; it is looked at after each output. */
  until(what: string, condition: () => boolean, timeoutMs = PATIENCE_MS): Promise<void> {
    return this.#waiters.until({
      holds: condition,
      lost: () => (this.#closed ? `the program ended before ${what}\n${this.output}` : undefined),
      late: () => `no ${what} within ${timeoutMs} ms\n${this.output}`,
      timeoutMs,
    });
  }

  /** Resolves with its exit; fails with its output if it is still there after `timeoutMs`. */
  async exited(timeoutMs = PATIENCE_MS): Promise<Exit> {
    await this.until('exit', () => this.#closed, timeoutMs);
    return this.exit;
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** Pids of all its processes that are alive, found by the marker in their environment. */
  survivors(): number[] {
    return [...readProcesses().keys()].filter((pid) =>
      hasVariable(pid, `TEST_MARKER=${this.marker}`),
    );
  }

  /** Resolves once none of its processes is alive. */
  async gone(timeoutMs = PATIENCE_MS): Promise<void> {
    await eventually(
      'the end of all processes',
      () => this.survivors(),
      ({ length }) => length === 0,
      timeoutMs,
    );
  }

  /** Kills every process of it. */
  async destroy(): Promise<void> {
    // Not by its pid: once it has ended, that may be another's, also a thread's.
    this.child.kill('SIGKILL');
    for (const pid of this.survivors()) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // it has ended by itself
      }
    }
    await this.exit;
    running.delete(this);
  }

  /** Takes in what a stream gave; returns the line that is not complete yet. */
  #read(chunk: string, before: string): string {
    this.output += chunk;
    const parts = (before + chunk).split('\n');
    const rest = parts.pop()!;
    for (const part of parts) {
      if (!part.startsWith('{"time"')) continue;
      this.lines.push(JSON.parse(part) as LogLine);
    }
    this.#waiters.look();
    return rest;
  }
}
