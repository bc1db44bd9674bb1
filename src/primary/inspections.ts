import { InspectionError } from '../errors/index.js';
import type { Recording, StackReport, WorkerMessage } from '../ipc/index.js';
import type { WorkerId } from './core/cluster-state.js';
import { Transfer } from './transfer.js';
import type { WorkerHandle } from './worker-handle.js';
import type { WorkerTable } from './worker-table.js';

/** What a worker is doing. */
export interface WorkerStack extends Omit<StackReport, 'answered'> {
  readonly slot: number;
  readonly pid: number;
  /** Why there is no stack, in words. */
  readonly problem: string | null;
}

/** The answer is promised within a second. */
const STACK_TIMEOUT_MS = 900;

/** Beyond the time that a recording takes: V8 hands over what it has recorded, on a machine that may be busy. */
const RECORDING_GRACE_MS = 10_000;

const STOPPED =
  'its watchdog did not answer: the process is stopped, or the machine is overloaded; look at its state with ps';
const NATIVE = 'its main thread did not answer: it is in native code';

type Answer = WorkerMessage & { readonly type: 'stack' };

/** Looks into workers through their watchdogs, which answer also where the event loop does not. */
export class Inspections {
  /** Stacks that are awaited. */
  readonly #stacks = new Map<WorkerId, { promise: Promise<WorkerStack>; settle: Settle }>();
  readonly #recorded = new Set<WorkerId>();
  #asked = 0;

  constructor(private readonly table: Pick<WorkerTable, 'state' | 'find'>) {}

  /** @throws InspectionError */
  async stack(slot: number): Promise<WorkerStack> {
    const { id, worker } = this.#find(slot);
    const under = this.#stacks.get(id);
    if (under !== undefined) return under.promise;
    const { pid } = worker.identity;
    const asked = (this.#asked += 1);
    if (!worker.askWatchdog({ type: 'stack', id: asked })) throw noWatchdog(slot);
    let resolve!: (stack: WorkerStack) => void;
    const promise = new Promise<WorkerStack>((resolved) => (resolve = resolved));
    const none = { blockedForMs: null, requests: [], frames: [], answered: true };
    const timer = setTimeout(() => settle(undefined), STACK_TIMEOUT_MS);
    const settle: Settle = (answer) => {
      if (answer !== undefined && answer.id !== asked) return;
      clearTimeout(timer);
      this.#stacks.delete(id);
      const { blockedForMs, requests, frames, answered } = answer ?? none;
      const problem = answer === undefined ? STOPPED : answered ? null : NATIVE;
      resolve({ slot, pid, blockedForMs, requests, frames, problem });
    };
    this.#stacks.set(id, { promise, settle });
    return promise;
  }

  /** The watchdog of a worker answers. */
  answered(worker: WorkerId, answer: Answer): void {
    this.#stacks.get(worker)?.settle(answer);
  }

  /**
   * Records what a worker does, and passes it on as it comes. Whoever reads no
   * further ends the recording.
   *
   * @throws InspectionError before or in the middle.
   */
  async *record(slot: number, recording: Recording): AsyncGenerator<Buffer, void> {
    const { id, worker } = this.#find(slot);
    if (this.#recorded.has(id)) {
      throw new InspectionError('busy', `worker=${slot} is being profiled; wait for the end of that`);
    }
    this.#recorded.add(id);
    try {
      const transfer = await Transfer.open();
      try {
        const asked = worker.askWatchdog({ type: 'record', to: transfer.path, ...recording });
        if (!asked) throw noWatchdog(slot);
        yield* transfer.read(recording.seconds * 1_000 + RECORDING_GRACE_MS);
      } finally {
        await transfer.close();
      }
    } finally {
      this.#recorded.delete(id);
    }
  }

  #find(slot: number): { readonly id: WorkerId; readonly worker: WorkerHandle } {
    const id = this.table.state.slots[slot]?.worker;
    const worker = id === undefined ? undefined : this.table.find(id);
    if (id !== undefined && worker !== undefined) return { id, worker };
    throw new InspectionError(
      'no-worker',
      `there is no worker in slot ${slot} now; the cluster has slots 0 to ${this.table.state.desired - 1}`,
    );
  }
}

type Settle = (answer: Answer | undefined) => void;

function noWatchdog(slot: number): InspectionError {
  return new InspectionError(
    'no-watchdog',
    `worker=${slot} has no watchdog, which is what looks into it; do not set the option watchdog to false`,
  );
}
