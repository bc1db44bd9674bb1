import { readFileSync } from 'node:fs';
import type { ResolvedClusterOptions } from '../../contract/options/index.js';
import type { Reading } from '../../decide/cluster-event.js';
import type { WorkerId } from '../../decide/cluster-state.js';
import type { WorkerHandle } from '../worker-handle.js';
import type { WorkerTable } from '../worker-table.js';

export const UPKEEP_INTERVAL_MS = 1_000;

/** Measures workers for the limits in the options `memory` and `recycle`. */
export class WorkerReadings {
  readonly #limitsMemory: boolean;
  readonly needed: boolean;

  constructor(
    { memory, recycle }: Pick<ResolvedClusterOptions, 'memory' | 'recycle'>,
    private readonly measure: (pid: number) => number | undefined = residentMemoryBytes,
  ) {
    this.#limitsMemory = [memory.softLimitBytes, memory.hardLimitBytes].some(Number.isFinite);
    const { maxRequests, maxAgeMs } = recycle;
    this.needed = this.#limitsMemory || [maxRequests, maxAgeMs].some(Number.isFinite);
  }

  of({ identity, stats }: WorkerHandle): Reading {
    // Measured from outside if possible, because a hung worker reports nothing.
    const residentBytes = () => this.measure(identity.pid) ?? stats?.residentMemoryBytes ?? 0;
    return {
      residentBytes: this.#limitsMemory ? residentBytes() : 0,
      requests: stats?.requestsTotal ?? 0,
    };
  }

  ofAll(table: Pick<WorkerTable, 'state' | 'find'>): ReadonlyMap<WorkerId, Reading> {
    const readings = new Map<WorkerId, Reading>();
    for (const id of table.state.workers.keys()) {
      const handle = table.find(id);
      if (handle !== undefined) readings.set(id, this.of(handle));
    }
    return readings;
  }
}

/**
 * Resident memory of a process in bytes. Read from the kernel, so a stopped or hung process can be
 * measured too. `undefined` if there is no /proc, or if the process has exited.
 */
function residentMemoryBytes(pid: number): number | undefined {
  try {
    // The kernel makes this file in memory, so a synchronous read waits for no disk.
    const [, kilobytes] =
      /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    return kilobytes === undefined ? undefined : Number(kilobytes) * 1024;
  } catch {
    return undefined;
  }
}
