import { AddressUnavailableError } from '../errors/index.js';
import type { EmitEvent } from '../events/index.js';
import { reportError, type WorkerMessage } from '../ipc/index.js';
import type { ClusterSnapshot } from '../snapshot/index.js';
import type { Listening } from './listening/listening.interface.js';
import type { Slot } from './slot.js';
import type { Waiting } from './waiting.js';
import type { WorkerHandle } from './worker-handle.js';
import type { WorkerTable } from './worker-table.js';

/** Somebody wants another number of workers. */
export interface ScaleRequest extends Waiting<ClusterSnapshot> {
  readonly workers: number;
  readonly reason: string;
  /** A new worker would have nothing to listen on. */
  readonly refused: (error: AddressUnavailableError) => void;
}

/** What a worker asks, and how it is answered. */
export function scaleRequestOf(
  worker: WorkerHandle,
  { id, workers }: WorkerMessage & { type: 'scale-request' },
): ScaleRequest {
  return {
    workers,
    reason: `scale() in worker=${worker.identity.slot}`,
    leaving: true,
    done: (snapshot) => worker.send({ type: 'scaled', id, snapshot }),
    refused: ({ address, cause }) =>
      worker.send({ type: 'scale-refused', id, address, cause: reportError(cause) }),
  };
}

/** What scaling needs of the supervisor. */
export interface ScalingPorts {
  start(slot: Slot): void;
  /** Every worker of the slot is to leave. */
  dismiss(slot: Slot): void;
}

/** Adds and takes away workers while the cluster runs. */
export class Scaling {
  #waiting: Waiting<ClusterSnapshot>[] = [];

  constructor(
    private readonly table: WorkerTable,
    private readonly listening: Pick<Listening, 'reserve'>,
    private readonly emit: EmitEvent,
    private readonly ports: ScalingPorts,
  ) {}

  /** Who asks is told once the new workers are ready, or have failed, and the others are gone. */
  scale({ workers, reason, refused, ...waiting }: ScaleRequest): void {
    const { desired, slots } = this.table;
    try {
      this.listening.reserve(workers);
    } catch (error) {
      if (error instanceof AddressUnavailableError) return refused(error);
      throw error;
    }
    this.#waiting.push(waiting);
    if (workers !== desired) {
      this.emit('scaling', { from: desired, to: workers, reason });
      for (const slot of this.table.resize(workers)) if (!slot.current) this.ports.start(slot);
      for (const slot of slots.slice(workers)) this.ports.dismiss(slot);
    }
    this.settle();
  }

  /** Tells who waits, if what was asked for has come about. */
  settle(): void {
    if (this.#waiting.length === 0) return;
    const { slots, surplus } = this.table;
    if (slots.some((slot) => !slot.ready && slot.starting)) return;
    const settled = this.#waiting.filter(({ leaving }) => leaving || surplus.length === 0);
    this.#waiting = this.#waiting.filter((each) => !settled.includes(each));
    for (const { done } of settled) done(this.table.snapshot());
  }

  /** Nothing more will come about. */
  release(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { done } of waiting) done(this.table.snapshot());
  }
}
