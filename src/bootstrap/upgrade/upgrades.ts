import type { ChildProcess } from 'node:child_process';
import type { Socket } from 'node:net';
import type { EmitEvent, EventListeners } from '../../contract/events/index.js';
import { MAX_TIMER_MS, type ResolvedClusterOptions } from '../../contract/options/index.js';
import { SHUTTING_DOWN, type UpgradeResult } from '../../contract/snapshot/index.js';
import { CHECK_TIMEOUT_MS } from '../../supervisor/decide/replace/replacement.js';
import type { Listening } from '../../supervisor/listening/listening.interface.js';
import { readLines } from '../../supervisor/processes/read-lines.js';
import type { Program } from '../../supervisor/processes/release.js';
import type { HubDoor } from '../../supervisor/serve/hub-door.js';
import type { Supervisor } from '../../supervisor/supervisor.js';
import type { Doors } from '../roles/doors.js';
import {
  type Handover,
  HANDOVER_VERSION,
  PIPE_DESCRIPTOR,
  sendLine,
  type ToOldPrimary,
} from './handover.js';
import { descriptorOf, startPrimary } from './new-primary.js';
import type { Predecessor } from './predecessor.js';
import { currentSituation, refusalOf } from './refusal.js';

/** Added to the time that a new primary needs to drain its workers, before it is killed. */
const EXIT_GRACE_MS = 2_000;

/** The parts of this primary that take part in an upgrade. */
interface Parts {
  readonly options: ResolvedClusterOptions;
  /** The number of workers in the options. `options.workers` may come from the primary before. */
  readonly configured: number;
  readonly listening: Listening;
  readonly program: Program;
  readonly supervisor: Supervisor;
  readonly hub: HubDoor;
  readonly doors: Doors;
  readonly events: EventListeners;
  readonly emit: EmitEvent;
  readonly predecessor: Predecessor | undefined;
}

/**
 * Replaces this primary by a new one: starts it with the listening sockets, waits until it serves,
 * and then drains. If the new primary fails, this one serves on.
 */
export class Upgrades {
  /** The new primary, until it has taken over or failed. */
  #candidate: ChildProcess | undefined;
  #underWay: Promise<UpgradeResult> | undefined;
  #stopping = false;
  /** The pipe to the primary that has taken over. */
  #successor: Socket | undefined;

  constructor(private readonly parts: Parts) {
    const stop = (): void => {
      this.#stopping = true;
      if (this.#candidate !== undefined) this.#end(this.#candidate);
    };
    parts.events.on('stopping', stop);
    parts.events.on('failed', stop);
  }

  /** The reason why an upgrade is refused now; `undefined` if it is possible. */
  refusal(): string | undefined {
    const why = this.#obstacle();
    return why && `the cluster is not upgraded: ${why}`;
  }

  #obstacle(): string | undefined {
    const { predecessor, supervisor, listening } = this.parts;
    if (this.#stopping) return 'it is shutting down';
    if (this.#underWay !== undefined) return 'an upgrade is under way';
    if (predecessor?.isGone === false) return 'the primary before this one has not left yet';
    if (supervisor.reloading) return 'a reload is under way';
    return refusalOf(listening, currentSituation(predecessor !== undefined));
  }

  /** To be called only without a refusal. Resolves once the new primary has taken over or failed. */
  start(reason: string): Promise<UpgradeResult> {
    this.#underWay = this.#run(reason).finally(() => (this.#underWay = undefined));
    return this.#underWay;
  }

  /** Called when every worker has ended: waits for a new primary that failed, or tells it to lead. */
  async leave(): Promise<void> {
    await this.#underWay;
    if (this.#successor === undefined) return;
    await sendLine(this.#successor, { type: 'left', ...this.parts.supervisor.succession.bequest });
  }

  async #run(reason: string): Promise<UpgradeResult> {
    const { doors, supervisor, emit } = this.parts;
    const startedAt = performance.now();
    supervisor.succession.share(true);
    const { pid, pipe, problem: found = null } = await this.#try(reason);
    const problem = found !== null && this.#stopping ? SHUTTING_DOWN : found;
    const outcome = problem === null ? 'completed' : 'aborted';
    const result = { outcome, pid, reason: problem } as const;
    const end = () =>
      emit('upgrade-ended', { ...result, durationMs: performance.now() - startedAt });
    if (problem !== null) {
      supervisor.succession.share(false);
      end();
      return result;
    }
    this.#successor = pipe;
    (await doors.control)?.handOver();
    void sendLine(pipe!, { type: 'take-over' });
    end();
    // Probes would take the drain for the end of the cluster.
    await doors.admin?.close();
    supervisor.stop('upgrade');
    return result;
  }

  /** Starts a new primary. @returns why it does not take over, or its pid and its pipe. */
  async #try(reason: string) {
    const { emit, doors } = this.parts;
    let child: ChildProcess;
    try {
      child = this.#start();
    } catch (error) {
      return { pid: null, problem: (error as Error).message };
    }
    const exited = new Promise<string>((resolve) => {
      child.once('error', ({ message }) => resolve(message));
      child.once('exit', (code, signal) =>
        resolve(`the new primary ended with ${signal ?? `exit code ${code}`}`),
      );
    });
    if (child.pid === undefined) return { pid: null, problem: await exited };
    this.#candidate = child;
    const { pid } = child;
    const pipe = child.stdio[PIPE_DESCRIPTOR] as Socket;
    emit('upgrade-started', { pid, node: child.spawnfile, reason });
    let problem = await this.#canary(child, pipe, exited);
    if (problem === undefined) {
      await Promise.race([doors.systemd?.mainPid(pid), exited]);
      // The new primary may have ended during the wait, or this one may have been told to stop.
      const hasEnded = child.exitCode !== null || child.signalCode !== null || this.#stopping;
      if (hasEnded) problem = await exited;
      if (hasEnded) void doors.systemd?.mainPid(process.pid);
    }
    this.#candidate = undefined;
    return { pid, pipe, problem };
  }

  #start(): ChildProcess {
    const { doors, options, listening, program, supervisor, predecessor, configured } = this.parts;
    const { admin } = doors;
    const { host = '', port = 0 } = options.admin ?? {};
    const socket = listening.sockets[0];
    const passed = [socket?.handle?.fd, admin?.fd].filter((fd) => fd !== undefined);
    const handover: Handover = {
      v: HANDOVER_VERSION,
      pid: process.pid,
      firstPid: predecessor?.handover.firstPid ?? process.pid,
      socket: socket && { fd: descriptorOf(0), activated: socket.target.activated === true },
      admin: admin && { host, port, fd: descriptorOf(passed.length - 1) },
      workers: { configured, desired: supervisor.snapshot().desired },
    };
    return startPrimary(program.start(), handover, passed);
  }

  /** Waits until the new primary serves. @returns why it does not, once it has ended. */
  async #canary(
    child: ChildProcess,
    pipe: Socket,
    exited: Promise<string>,
  ): Promise<string | undefined> {
    const { readyTimeoutMs, reload } = this.parts.options;
    let problem: string | undefined;
    const serving = new Promise<undefined>((resolve) => {
      readLines<ToOldPrimary>(pipe, (message) => {
        if (message.type === 'serving') resolve(undefined);
        else if (message.type === 'failed') problem ??= message.reason;
        else void this.#answerHub(pipe);
      });
    });
    // Once for the new primary itself, and once for its workers, which start together.
    const withinMs = Math.min(
      2 * readyTimeoutMs + reload.canaryMs + CHECK_TIMEOUT_MS,
      MAX_TIMER_MS,
    );
    const timer = setTimeout(() => {
      problem ??= `the new primary did not serve within ${withinMs} ms (2 × readyTimeoutMs + reload.canaryMs + ${CHECK_TIMEOUT_MS})`;
      this.#end(child);
    }, withinMs);
    const ended = await Promise.race([serving, exited]);
    clearTimeout(timer);
    if (problem !== undefined) await exited;
    return problem ?? ended;
  }

  /** Lets workers of the new primary use this primary's hub, so that a lock has one holder. */
  async #answerHub(pipe: Socket): Promise<void> {
    try {
      await sendLine(pipe, { type: 'hub', ...(await this.parts.hub.address()) });
    } catch (error) {
      await sendLine(pipe, { type: 'hub-refused', reason: (error as Error).message });
    }
  }

  /** Lets a new primary drain its workers, because they serve already. Kills it if it does not end. */
  #end(child: ChildProcess): void {
    const { lameDuckMs, drainTimeoutMs, killTimeoutMs } = this.parts.options.shutdown;
    const patienceMs = lameDuckMs + drainTimeoutMs + killTimeoutMs + EXIT_GRACE_MS;
    child.kill('SIGTERM');
    setTimeout(() => child.kill('SIGKILL'), Math.min(patienceMs, MAX_TIMER_MS)).unref();
  }
}
