import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { hasVariable, readProcesses, signal, withDescendants } from './process-table.mjs';
import { StartedProcess } from './started-process.mjs';

/** In the environment of every process of a group: so those that detach themselves are found too. */
const MARK = 'NESTJS_CLUSTER_BENCH';

/** How long a group may take to end in order; then it is killed. */
const ORDERLY_MS = 6_000;

/** Groups that are not stopped yet. The one list of them, since a signal ends them all. */
const groups = new Set();
let ending = false;

/** Ends everything that was started, for good: no group can be made afterwards. */
export async function stopAll() {
  ending = true;
  const results = await Promise.allSettled([...groups].map((group) => group.stop()));
  const failed = results.find(({ status }) => status === 'rejected');
  if (failed) throw failed.reason;
}

/**
 * Processes that belong together, what they forked or daemonised, and what is to be undone after
 * them: all of it is gone once `stop()` has resolved, however far they had come.
 */
export class ProcessGroup {
  #id = randomUUID();
  #stopping = new AbortController();
  #started = [];
  #undo = [];
  #seen = new Map(); // when each was started, by pid
  #stopped;

  constructor() {
    if (ending) throw new Error('the benchmark is being ended');
    groups.add(this);
  }

  /** Resolves as `begin` does with a new group. If `begin` fails, the whole group is ended. */
  static async begin(begin) {
    const group = new ProcessGroup();
    try {
      return await begin(group);
    } catch (error) {
      await group.stop();
      throw error;
    }
  }

  /**
   * Aborted when the group is to end.
   *
   * @returns {AbortSignal}
   */
  get signal() {
    return this.#stopping.signal;
  }

  /** Starts a process that is told nothing of this one's environment but where programs are. */
  spawn(command, args, { env, cwd } = {}) {
    this.signal.throwIfAborted();
    const child = spawn(command, args, {
      cwd,
      env: {
        // The system's programs are not on everybody's path.
        PATH: `${process.env.PATH}:/usr/sbin:/sbin`,
        HOME: process.env.HOME,
        ...env,
        [MARK]: this.#id,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
      // A process group of its own: Ctrl-C reaches the benchmark alone, which ends all in order.
      detached: true,
    });
    const started = new StartedProcess(child, [command, ...args].join(' '));
    this.#started.push(started);
    return started;
  }

  /** Runs a command to its end. Resolves with its lines; rejects where its code is not 0. */
  async run(command, args, options) {
    const started = this.spawn(command, args, options);
    const lines = [];
    started.onLine((line) => lines.push(line));
    const how = await started.ended;
    if (how !== 'code 0') throw started.error(`failed (${how})`);
    return lines;
  }

  /** A folder that goes with the group. Others may enter it: nginx does not keep root's rights. */
  temporaryFolder() {
    this.signal.throwIfAborted();
    const folder = mkdtempSync(path.join(os.tmpdir(), 'nestjs-cluster-bench-'));
    this.onStopped(() => rmSync(folder, { recursive: true, force: true }));
    chmodSync(folder, 0o755);
    return folder;
  }

  /** Called once its processes are gone; the last that was added comes first. */
  onStopped(undo) {
    this.#undo.unshift(undo);
  }

  /** Idempotent. */
  stop() {
    this.#stopped ??= this.#end();
    return this.#stopped;
  }

  async #end() {
    this.#stopping.abort(new Error('ended before it had started'));
    await this.#endProcesses();
    const errors = [];
    for (const undo of this.#undo) {
      try {
        await undo();
      } catch (error) {
        errors.push(error);
      }
    }
    groups.delete(this);
    if (errors.length > 0) throw new AggregateError(errors, errors[0].message);
  }

  async #endProcesses() {
    const asked = new Set();
    const deadline = performance.now() + ORDERLY_MS;
    for (;;) {
      const members = this.#members();
      if (members.size === 0) break;
      const late = performance.now() > deadline;
      for (const [pid, { parent, startedAt }] of members) {
        // If the parent is a member too, the parent has to end this process.
        if (!late && (asked.has(`${pid} ${startedAt}`) || members.has(parent))) continue;
        asked.add(`${pid} ${startedAt}`);
        signal(pid, late ? 'SIGKILL' : 'SIGTERM');
      }
      await delay(20);
    }
    await Promise.all(this.#started.map((started) => started.ended));
  }

  /** Found by the mark in their environment, and by descent: nginx overwrites its environment. */
  #members() {
    const processes = readProcesses();
    const known = this.#started.filter(({ runs }) => runs).map(({ pid }) => pid);
    for (const [pid, startedAt] of this.#seen) {
      if (processes.get(pid)?.startedAt === startedAt) known.push(pid);
      else this.#seen.delete(pid);
    }
    for (const pid of processes.keys())
      if (hasVariable(pid, `${MARK}=${this.#id}`)) known.push(pid);
    const members = new Map();
    for (const pid of withDescendants(known, processes)) {
      members.set(pid, processes.get(pid));
      this.#seen.set(pid, processes.get(pid).startedAt);
    }
    return members;
  }
}
