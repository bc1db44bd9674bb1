import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { clean, Refusal } from '../contract/errors/errors.js';
import { claimDirectory, ownTemporaryDirectory } from '../contract/files/control-address.js';
import type { WatchdogRequest, WorkerMessage } from '../contract/messages.js';
import { inTime } from '../contract/process/in-time.js';
import type { Recording, RecordingKind, WorkerStack } from '../contract/snapshot/types.js';
import type { WorkerHandle } from './worker-handle.js';
import type { WorkerTable } from './worker-table.js';

/** The maximum time for a stack. Clients are promised an answer within one second. */
const STACK_TIMEOUT_MS = 900;

/** Maximum time beyond a recording's length: on a busy machine V8 finishes the recording late. */
const GRACE_MS = 10_000;

/** Limits how many profiles of workers above the soft limit are written and kept. */
const PROFILE_INTERVAL_MS = 3_600_000;
const MAX_KEPT = 5;

const STOPPED =
  'its watchdog did not answer: the process is stopped, or the machine is overloaded; check the state of the process with ps';
const ENDED = 'the worker has exited';
const NATIVE = 'its main thread did not answer: it is running native code';

type Answer = WorkerMessage & { readonly type: 'stack' | 'recorded' };
type AnswerTo<T extends Answer['type']> = Answer & { readonly type: T };

/** Inspects workers through their watchdogs, which answer even if the event loop is blocked. */
export class Inspections {
  readonly #asked = new Map<number, { worker: WorkerHandle; settle(answer?: Answer): void }>();
  readonly #recorded = new Set<WorkerHandle>();
  /** When each slot's worker was last profiled for exceeding the soft limit, in monotonic ms. */
  readonly #profiledAt = new Map<number, number>();
  readonly #kept: string[] = [];
  #last = 0;

  constructor(private readonly table: Pick<WorkerTable, 'state' | 'find'>) {}

  /** @throws Refusal */
  async stack(slot: number): Promise<WorkerStack> {
    const worker = this.#find(slot);
    const { pid } = worker.identity;
    const answer = await this.#stackOf(worker);
    const { blockedForMs = null, requests = [], frames = [] } = answer ?? {};
    const silence = worker.known() === undefined ? ENDED : STOPPED;
    const problem = answer === undefined ? silence : answer.answered ? null : NATIVE;
    return { slot, pid, blockedForMs, requests, frames, problem };
  }

  /**
   * Records a profile of a worker. The worker writes it to a file that only this user can read.
   *
   * @returns the path of the file, and the largest allocations of a heap profile.
   * @throws Refusal
   */
  async record(slot: number, recording: Recording): Promise<{ file: string; top: string }> {
    const worker = this.#find(slot);
    if (this.#recorded.has(worker)) {
      const message = `worker=${slot} is already being profiled; try again later`;
      throw new Refusal(409, 'BUSY', message);
    }
    this.#recorded.add(worker);
    try {
      const to = newFile(worker, recording.kind);
      // A recording is slow, so a stopped process is detected first.
      if ((await this.#stackOf(worker)) === undefined) throw silent(worker, STOPPED);
      const timeoutMs = recording.seconds * 1_000 + GRACE_MS;
      const request = { type: 'record', id: this.#nextId(), to, ...recording } as const;
      const answer = await this.#ask<'recorded'>(worker, request, timeoutMs);
      if (answer === undefined) throw silent(worker, NATIVE);
      if (answer.problem !== null) throw unwritten(to, answer.problem);
      return { file: to, top: answer.top.join(', ') };
    } finally {
      this.#recorded.delete(worker);
    }
  }

  /**
   * Profiles the heap of a worker above the soft limit, once an hour for each slot. Keeps {@link MAX_KEPT} files.
   *
   * @returns a log message with the largest allocations and the file. `undefined` within the hour.
   */
  async profileLarge(slot: number): Promise<string | undefined> {
    const now = performance.now();
    if (now - (this.#profiledAt.get(slot) ?? -Infinity) < PROFILE_INTERVAL_MS) return undefined;
    this.#profiledAt.set(slot, now);
    try {
      const { file, top } = await this.record(slot, { kind: 'heap-profile', seconds: 0 });
      this.#kept.push(file);
      if (this.#kept.length > MAX_KEPT) rmSync(this.#kept.shift()!, { force: true });
      return `exceeds memory.softLimitBytes and holds ${top}; heap profile: ${file}`;
    } catch (error) {
      return `exceeds memory.softLimitBytes; no heap profile: ${(error as Error).message}`;
    }
  }

  /** Handles an answer from a worker's watchdog. Ignores one to an earlier request. */
  answered(answer: Answer): void {
    this.#asked.get(answer.id)?.settle(answer);
  }

  ended(worker: WorkerHandle): void {
    for (const asked of this.#asked.values()) if (asked.worker === worker) asked.settle();
  }

  #stackOf(worker: WorkerHandle): Promise<AnswerTo<'stack'> | undefined> {
    return this.#ask<'stack'>(worker, { type: 'stack', id: this.#nextId() }, STACK_TIMEOUT_MS);
  }

  #nextId(): number {
    return (this.#last += 1);
  }

  /** Resolves with `undefined` if no answer comes in time. */
  async #ask<T extends Answer['type']>(
    worker: WorkerHandle,
    request: WatchdogRequest & { readonly id: number },
    timeoutMs: number,
  ): Promise<AnswerTo<T> | undefined> {
    if (!worker.askWatchdog(request)) {
      const message = `worker=${worker.identity.slot} has no watchdog to inspect it; remove the option watchdog: false`;
      throw new Refusal(409, 'NO_WATCHDOG', message);
    }
    const answer = new Promise<Answer | undefined>((settle) => {
      this.#asked.set(request.id, { worker, settle });
    });
    try {
      return (await inTime(answer, timeoutMs, () => undefined)) as AnswerTo<T> | undefined;
    } finally {
      this.#asked.delete(request.id);
    }
  }

  #find(slot: number): WorkerHandle {
    const id = this.table.state.slots[slot]?.worker;
    const worker = id && this.table.find(id);
    if (worker) return worker;
    const message = `slot ${slot} has no worker now; list the slots with nestjs-cluster status`;
    throw new Refusal(404, 'NO_WORKER', message);
  }
}

function newFile({ identity: { slot, pid } }: WorkerHandle, kind: RecordingKind): string {
  const directory = ownTemporaryDirectory();
  const time = new Date().toISOString().replaceAll(/[-:.]/g, '');
  // Browser developer tools open files named .cpuprofile and .heapprofile.
  const file = join(directory, `worker-${slot}-pid-${pid}-${time}.${kind.replace('-', '')}`);
  try {
    claimDirectory(directory);
    return file;
  } catch (error) {
    throw unwritten(file, (error as Error).message);
  }
}

function silent({ identity: { slot }, known }: WorkerHandle, why: string): Refusal {
  return known() === undefined
    ? new Refusal(502, 'ENDED', 'the worker exited before its profile was complete')
    : new Refusal(504, 'SILENT', `worker=${slot}: ${why}`);
}

function unwritten(file: string, problem: string): Refusal {
  const message = `cannot write ${file}: ${clean(problem)}; set TMPDIR to use another directory`;
  return new Refusal(502, 'FAILED', message);
}
