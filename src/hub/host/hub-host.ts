import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { isAlive, probe, removeSocket } from '../../control/stale-sockets.js';
import { LEAVE_OUT_OF_BUNDLE, ownFile } from '../../process/own-file.js';
import { findHubPlace } from './hub-place.js';
import type { HubAddress } from '../../snapshot/index.js';
import type { HubThreadData, HubThreadMessage } from '../server/hub-thread.js';

const CHECK_MS = 1_000;

/** So many checks without a beat of its pulse: it hangs. A thread is starved for less, also on a machine that is busy. */
const MAX_SILENT_CHECKS = 3;

/** From its end to the next one, and twice as long each time it fails again. */
const RESTART_MS = 50;
const MAX_RESTART_MS = 15_000;

/** After so long the next end counts as the first. */
const STABLE_MS = 60_000;

/** Sockets of hubs, `<pid of the primary>.<random>.hub`, and those that workers have beside them. */
const HUB_SOCKET = /^(\d+)\.[\da-f]+(?:\.\d+-[\da-f]+)?\.hub$/;

/** The hub's thread, seen from the primary: it is started anew when it ends or hangs. Its state is lost then. */
export class HubHost {
  readonly #pulse = new Int32Array(new SharedArrayBuffer(4));
  #thread: Worker | undefined;
  #started = 0;
  #startedAt = 0;
  #restartMs = RESTART_MS;

  private constructor(
    private readonly program: string,
    private readonly directory: string,
    readonly address: HubAddress,
    private readonly warn: (message: string) => void,
  ) {}

  /** @throws Error where there can be none; its message says why. */
  static async open(warn: (message: string) => void): Promise<HubHost> {
    const program = ownFile('hub/server/hub-thread.js');
    if (program === undefined) throw new Error(LEAVE_OUT_OF_BUNDLE);
    const random = () => globalThis.crypto.randomUUID().replaceAll('-', '');
    const file = `${process.pid}.${random().slice(0, 8)}.hub`;
    const { directory, path, temporary } = findHubPlace(file);
    const host = new HubHost(program, directory, { path, token: random() }, warn);
    const clear = (): void => {
      removeSocket(path);
      if (temporary) rmSync(directory, { recursive: true, force: true });
    };
    try {
      await host.#start();
    } catch (error) {
      clear(); // workers ask each second
      throw error;
    }
    host.#watch();
    process.once('exit', clear);
    host.#removeStale().catch(() => {}); // they are in nobody's way
    return host;
  }

  /** Resolves once it listens. */
  async #start(): Promise<void> {
    this.#started += 1;
    this.#startedAt = performance.now();
    const data: HubThreadData = {
      ...this.address,
      instance: `${process.pid}.${this.#started}`,
      restarted: this.#started > 1,
      pulse: this.#pulse,
    };
    const thread = new Worker(this.program, {
      workerData: data,
      // Nothing of the app's: no loader, no preloaded module, no NODE_OPTIONS.
      execArgv: [],
      env: {},
      trackUnmanagedFds: false,
    });
    thread.unref();
    this.#thread = thread;
    await new Promise<void>((resolve, reject) => {
      let listening = false;
      let reason = 'it ended by itself';
      thread.on(
        'error',
        (error) => (reason = error instanceof Error ? error.message : String(error)),
      );
      thread.on('exit', () => {
        if (listening) this.#restart(reason);
        else reject(new Error(reason));
      });
      thread.on('message', (message: HubThreadMessage) => {
        listening = message.type === 'listening';
        if (message.type === 'listening') return resolve();
        reason = message.message;
        void thread.terminate();
      });
    });
  }

  #restart(reason: string): void {
    if (performance.now() - this.#startedAt > STABLE_MS) this.#restartMs = RESTART_MS;
    this.warn(`the hub ended, and is started anew without what it held: ${reason}`);
    this.#startLater();
  }

  #startLater(): void {
    setTimeout(() => {
      this.#start().catch((error: Error) => {
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

  /** Of primaries that were killed. */
  async #removeStale(): Promise<void> {
    for (const file of readdirSync(this.directory)) {
      const [, pid] = HUB_SOCKET.exec(file) ?? [];
      if (pid === undefined || isAlive(Number(pid))) continue;
      const path = join(this.directory, file);
      if ((await probe(path)) === 'ECONNREFUSED') removeSocket(path);
    }
  }
}
