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

  constructor(
    private readonly options: ResolvedClusterOptions,
    private readonly table: WorkerTable,
    private readonly succession: Succession,
    private readonly emit: EmitEvent,
    private readonly measure: (pid: number) => number | undefined = residentMemoryBytes,
  ) {}

  /** Whether there is anything to look for. */
  get needed(): boolean {
    const { memory, recycle } = this.options;
    return [
      memory.softLimitBytes,
      memory.hardLimitBytes,
      recycle.maxRequests,
      recycle.maxAgeMs,
    ].some(Number.isFinite);
  }

  check(now: number): void {
    for (const worker of this.table.workers) {
      const slot = this.table.slotOf(worker);
      const tooLarge = this.#checkMemory(worker);
      const serves = slot.current === worker && worker.state === 'ready';
      if (!serves || worker.condemned !== undefined) continue;
      if (tooLarge !== undefined) this.#replace(slot, worker, 'memory', tooLarge, now);
      else if (this.#isOld(worker, now)) {
        const requests = worker.stats?.requestsTotal ?? 0;
        const age = `${requests} requests in ${Math.round((now - worker.startedAt) / 1_000)} s`;
        this.#replace(slot, worker, 'recycle', age, now);
      }
    }
  }

  /** Kills what is above the hard limit; says in words what is above the soft one. */
  #checkMemory(worker: WorkerHandle): string | undefined {
    const { memory } = this.options;
    // From outside where that can be: a hung worker reports nothing.
    const resident = this.measure(worker.identity.pid) ?? worker.stats?.residentMemoryBytes ?? 0;
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
    cause: ReplaceCause & ('memory' | 'recycle'),
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
