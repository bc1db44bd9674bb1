import { existsSync, readdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { isAlive, probe, removeSocket } from '../../contract/files/stale-sockets.js';
import type { ThreadProgram } from '../../contract/process/thread-program.js';
import { findHubPlace, type HubPlace } from './hub-place.js';
import type { HubAddress } from '../../contract/snapshot/index.js';
import type { HubMove, HubThreadData, HubThreadMessage } from '../../hub/thread/hub-thread.js';

const CHECK_MS = 1_000;

/** The thread counts as hung after this many checks without a pulse. Load alone delays the pulse for less. */
const MAX_SILENT_CHECKS = 3;

/** The delay before the thread is restarted. It doubles with each failure up to its maximum. */
const RESTART_MS = 50;
const MAX_RESTART_MS = 15_000;

/** If a thread has lived this long, the delay before its restart is the minimum again. */
const STABLE_MS = 60_000;

/** Names of hubs' sockets (`<pid of the primary>.<random>.hub`), and of their workers' sockets. */
const HUB_SOCKET = /^(\d+)\.[\da-f]+(?:\.\d+-[\da-f]+)?\.hub$/;

/** The primary's side of the hub. A thread that ends or hangs is restarted without its state. */
export class HubHost {
  readonly #pulse = new Int32Array(new SharedArrayBuffer(4));
  #thread: Worker | undefined;
  #started = 0;
  #startedAt = 0;
  #restartMs = RESTART_MS;
  /** Whether the thread has reported that it listens. */
  #listening = false;
  #moving: Promise<void> | undefined;
  #problem: string | undefined;

  private constructor(
    private readonly program: ThreadProgram,
    private readonly token: string,
    private place: HubPlace,
    private readonly warn: (message: string) => void,
  ) {}

  /** @throws Error if the hub cannot start; its message says why. */
  static async open(program: ThreadProgram, warn: (message: string) => void): Promise<HubHost> {
    const random = () => globalThis.crypto.randomUUID().replaceAll('-', '');
    const file = `${process.pid}.${random().slice(0, 8)}.hub`;
    const host = new HubHost(program, random(), findHubPlace(file), warn);
    const clear = (): void => {
      const { directory, path, temporary } = host.place;
      removeSocket(path);
      if (temporary) rmSync(directory, { recursive: true, force: true });
    };
    try {
      await host.#start();
    } catch (error) {
      clear(); // workers ask each second, and each try would leave files
      throw error;
    }
    host.#watch();
    process.once('exit', clear);
    host.#removeStale().catch(() => {}); // stale sockets do no harm
    return host;
  }

  /**
   * The address for workers. It may change if the socket's file is removed: the system removes
   * `XDG_RUNTIME_DIR` when the user logs out. Open connections stay.
   */
  async address(): Promise<HubAddress> {
    if (this.#problem !== undefined) throw new Error(this.#problem);
    // A hub that is being restarted makes a new socket file itself.
    if (this.#listening && !existsSync(this.place.path)) {
      await (this.#moving ??= this.#move().finally(() => (this.#moving = undefined)));
    }
    return { path: this.place.path, token: this.token };
  }

  async #move(): Promise<void> {
    const thread = this.#thread!;
    const next = this.#nextPlace();
    const problem = await new Promise<string | undefined>((resolve) => {
      const onExit = (): void => resolve('the hub has ended');
      thread.once('exit', onExit);
      thread.on('message', function onMessage(message: HubThreadMessage) {
        if (message.type !== 'moved') return;
        thread.off('message', onMessage).off('exit', onExit);
        resolve(message.problem);
      });
      thread.postMessage({ path: next.path } satisfies HubMove);
    });
    if (problem !== undefined) throw new Error(problem);
    this.place = next;
  }

  /** The same place as long as its directory exists; otherwise a new place. */
  #nextPlace(): HubPlace {
    const { directory, path } = this.place;
    return existsSync(directory) ? this.place : findHubPlace(basename(path));
  }

  async #start(): Promise<void> {
    this.place = this.#nextPlace();
    this.#started += 1;
    this.#startedAt = performance.now();
    const data: HubThreadData = {
      path: this.place.path,
      token: this.token,
      instance: `${process.pid}.${this.#started}`,
      restarted: this.#started > 1,
      pulse: this.#pulse,
    };
    const thread = this.program.start(data);
    this.#thread = thread;
    await new Promise<void>((resolve, reject) => {
      let reason = 'it ended by itself';
      thread.on(
        'error',
        (error) => (reason = error instanceof Error ? error.message : String(error)),
      );
      thread.on('exit', () => {
        const wasListening = this.#listening;
        this.#listening = false;
        if (wasListening) this.#restart(reason);
        else reject(new Error(reason));
      });
      thread.on('message', (message: HubThreadMessage) => {
        if (message.type === 'moved') return;
        this.#listening = message.type === 'listening';
        if (message.type === 'listening') {
          this.#problem = undefined;
          return resolve();
        }
        reason = message.message;
        void thread.terminate();
      });
    });
  }

  #restart(reason: string): void {
    if (performance.now() - this.#startedAt > STABLE_MS) this.#restartMs = RESTART_MS;
    this.warn(`the hub ended, and is started anew without its counts and cached values: ${reason}`);
    this.#startLater();
  }

  #startLater(): void {
    setTimeout(() => {
      this.#start().catch((error: Error) => {
        this.#problem = error.message;
        this.warn(`the hub cannot be started: ${error.message}; it is tried again`);
        this.#startLater();
      });
    }, this.#restartMs).unref();
    this.#restartMs = Math.min(2 * this.#restartMs, MAX_RESTART_MS);
  }

  /** Ends a thread whose pulse stands still. */
  #watch(): void {
    let seen = -1;
    let silent = 0;
    let watched = this.#thread;
    setInterval(() => {
      const now = Atomics.load(this.#pulse, 0);
      silent = now === seen && watched === this.#thread ? silent + 1 : 0;
      seen = now;
      watched = this.#thread;
      if (silent < MAX_SILENT_CHECKS) return;
      silent = 0;
      void this.#thread?.terminate();
    }, CHECK_MS).unref();
  }

  /** Removes sockets of primaries that were killed. */
  async #removeStale(): Promise<void> {
    const { directory } = this.place;
    for (const file of readdirSync(directory)) {
      const [, pid] = HUB_SOCKET.exec(file) ?? [];
      if (pid === undefined || isAlive(Number(pid))) continue;
      const path = join(directory, file);
      if ((await probe(path)) === 'ECONNREFUSED') removeSocket(path);
    }
  }
}
