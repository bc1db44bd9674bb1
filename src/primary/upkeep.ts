import type { EmitEvent } from '../events/index.js';
import type { ResolvedClusterOptions } from '../options/index.js';
import type { ReplaceCause } from '../snapshot/index.js';
import { judgeMemory } from './policies/memory.policy.js';
import { isRecyclingDue } from './policies/recycle.policy.js';
import { residentMemoryBytes } from './resident-memory.js';
import type { Slot } from './slot.js';
import type { Succession } from './succession.js';
import type { WorkerHandle } from './worker-handle.js';
import type { WorkerTable } from './worker-table.js';

/** How often memory is looked at. */
export const UPKEEP_INTERVAL_MS = 1_000;

/** Finds workers that have grown too large or served long enough, and has them replaced. */
export class Upkeep {
  /** Slots whose last replacement failed, and when the next may be tried; monotonic ms. */
  readonly #notBefore = new WeakMap<Slot, number>();

  /** That the limit is too low, is said once. */
  #warned = false;

  constructor(
    private readonly options: ResolvedClusterOptions,
    private readonly table: WorkerTable,
    private readonly succession: Succession,
    private readonly emit: EmitEvent,
    private readonly measure: (pid: number) => number | undefined = residentMemoryBytes,
  ) {}

  /** Whether there is anything to look for. */
  get needed(): boolean {
    const { maxRequests, maxAgeMs } = this.options.recycle;
    return this.#limitsMemory || [maxRequests, maxAgeMs].some(Number.isFinite);
  }

  get #limitsMemory(): boolean {
    const { softLimitBytes, hardLimitBytes } = this.options.memory;
    return [softLimitBytes, hardLimitBytes].some(Number.isFinite);
  }

  /** A worker has become ready: what it holds now, every worker will. */
  welcome(worker: WorkerHandle): void {
    if (!this.#limitsMemory) return;
    worker.bornTooLarge = judgeMemory(this.#residentBytes(worker), this.options.memory) !== 'fine';
  }

  /** The worker itself says that it should go. It says so again while it is there. */
  retire(worker: WorkerHandle, reason: string, now: number): void {
    const slot = this.table.slotOf(worker);
    const serves = slot.current === worker && worker.state === 'ready';
    if (serves && worker.condemned === undefined) {
      this.#replace(slot, worker, 'recycle', reason, now);
    }
  }

  check(now: number): void {
    for (const worker of this.table.workers) {
      const slot = this.table.slotOf(worker);
      const tooLarge = this.#checkMemory(worker);
      const serves = slot.current === worker && worker.state === 'ready';
      if (!serves || worker.condemned !== undefined) continue;
      if (tooLarge !== undefined) {
        if (worker.bornTooLarge) this.#spare(slot, worker, tooLarge);
        this.#replace(slot, worker, 'memory', tooLarge, now);
      } else if (this.#isOld(worker, now)) {
        const requests = worker.stats?.requestsTotal ?? 0;
        const age = `${requests} requests in ${Math.round((now - worker.startedAt) / 1_000)} s`;
        this.#replace(slot, worker, 'recycle', age, now);
      }
    }
  }

  /** Kills what is above the hard limit; says in words what is above the soft one. */
  #checkMemory(worker: WorkerHandle): string | undefined {
    if (!this.#limitsMemory) return undefined;
    const { memory } = this.options;
    const resident = this.#residentBytes(worker);
    switch (judgeMemory(resident, memory)) {
      case 'fine':
        return undefined;
      case 'replace':
        return `${inMegabytes(resident)} of memory, soft limit ${inMegabytes(memory.softLimitBytes)}`;
      case 'kill':
        worker.condemn(
          'memory',
          `it held ${inMegabytes(resident)} of memory, above memory.hardLimitBytes (${inMegabytes(memory.hardLimitBytes)}), and was killed`,
        );
        return undefined;
    }
  }

  /** From outside where that can be: a hung worker reports nothing. */
  #residentBytes(worker: WorkerHandle): number {
    return this.measure(worker.identity.pid) ?? worker.stats?.residentMemoryBytes ?? 0;
  }

  /** Another one would be as large at once: it is replaced all the same, but not over and over. */
  #spare(slot: Slot, worker: WorkerHandle, detail: string): void {
    const pauseMs = this.options.restart.maxBackoffMs;
    const notBefore = (worker.readyAt ?? 0) + pauseMs;
    this.#notBefore.set(slot, Math.max(this.#notBefore.get(slot) ?? 0, notBefore));
    if (this.#warned) return;
    this.#warned = true;
    this.emit('warning', {
      message: `holds too much from the start (${detail}): memory.softLimitBytes is too low for this app; replaced once in ${pauseMs} ms at most`,
      worker: worker.identity,
    });
  }

  #isOld(worker: WorkerHandle, now: number): boolean {
    return isRecyclingDue(
      { ageMs: now - worker.startedAt, requests: worker.stats?.requestsTotal ?? 0 },
      this.options.recycle,
      worker.lot,
    );
  }

  #replace(
    slot: Slot,
    worker: WorkerHandle,
    cause: Exclude<ReplaceCause, 'reload'>,
    detail: string,
    now: number,
  ): void {
    if (this.succession.concerns(slot) || now < (this.#notBefore.get(slot) ?? 0)) return;
    this.succession.request({
      slot,
      cause,
      release: slot.release,
      started: () => this.emit('worker-replacing', { worker: worker.identity, cause, detail }),
      tookOver: () => {
        if (cause === 'memory') slot.countRestart(cause);
      },
      ended: (failure) => {
        if (failure === null) return;
        const retryMs = this.options.restart.maxBackoffMs;
        this.#notBefore.set(slot, performance.now() + retryMs);
        this.emit('warning', {
          message: `is not replaced (cause=${cause}), next try in ${retryMs} ms: ${failure}`,
          worker: worker.identity,
        });
      },
    });
  }
}

function inMegabytes(bytes: number): string {
  return `${Math.round(bytes / 1e6)} MB`;
}
