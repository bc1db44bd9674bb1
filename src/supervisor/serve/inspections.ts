import { InspectionError } from '../../contract/errors/index.js';
import type { WorkerMessage } from '../../contract/ipc/index.js';
import type { ResolvedClusterOptions } from '../../contract/options/index.js';
import type { Recording, WorkerStack } from '../../contract/snapshot/index.js';
import type { WorkerId } from '../decide/cluster-state.js';
import type { Requests } from './requests.js';
import { roomForSnapshot } from './snapshot-room.js';
import { Transfer } from '../processes/transfer.js';
import type { WorkerHandle } from '../processes/worker-handle.js';
import type { WorkerTable } from '../processes/worker-table.js';

/** The maximum time for a stack. Clients are promised an answer within one second. */
const STACK_TIMEOUT_MS = 900;

/** Maximum time until a watchdog connects. The watchdog reads its requests 4 times a second. */
const WATCHDOG_MS = 2_000;

/** Maximum time beyond a recording's length: on a busy machine V8 finishes the recording late. */
const GRACE_MS = 10_000;

/** Maximum silence during a heap snapshot. V8 takes seconds per 100 MB before the first byte. */
const SNAPSHOT_SILENCE_MS = 120_000;

const STOPPED =
  'its watchdog did not answer: the process is stopped, or the machine is overloaded; look at its state with ps';
const ENDED = 'the worker has ended by now';
const NATIVE = 'its main thread did not answer: it is in native code';

type Answer = WorkerMessage & { readonly type: 'stack' };

interface AwaitedStack {
  readonly promise: Promise<WorkerStack>;
  settle(answer: Answer | undefined): void;
}

/** Inspects workers through their watchdogs, which answer even if the event loop is blocked. */
export class Inspections {
  readonly #stacks = new Map<WorkerId, AwaitedStack>();
  /** Workers with a recording or a heap snapshot under way. */
  readonly #recorded = new Set<WorkerId>();
  #asked = 0;

  constructor(
    private readonly table: Pick<WorkerTable, 'state' | 'find'>,
    private readonly memory: ResolvedClusterOptions['memory'],
    private readonly replace: Requests['restart'],
  ) {}

  /** @throws InspectionError */
  async stack(slot: number): Promise<WorkerStack> {
    const { id, worker } = this.#find(slot);
    const awaited = this.#stacks.get(id) ?? this.#ask(id, worker);
    return awaited.promise;
  }

  /** Handles the answer of a worker's watchdog to a stack request. */
  answered(worker: WorkerId, answer: Answer): void {
    this.#stacks.get(worker)?.settle(answer);
  }

  /**
   * Records a profile of a worker, and yields its bytes as they arrive. If the reader stops, the
   * recording ends.
   *
   * @param gone is aborted when the client has left.
   * @throws InspectionError before the first byte, or after it.
   */
  record(slot: number, recording: Recording, gone: AbortSignal): AsyncGenerator<Buffer, void> {
    return this.#exclusively(slot, gone, (worker, transfer) => {
      const asked = worker.askWatchdog({ type: 'record', to: transfer.path, ...recording });
      if (!asked) throw noWatchdog(slot);
      const overdue = after(WATCHDOG_MS).then(() =>
        worker.known() === undefined
          ? new InspectionError('ended', 'the worker ended before it was complete')
          : new InspectionError('silent', `worker=${slot}: ${STOPPED}`),
      );
      return transfer.read(recording.seconds * 1_000 + GRACE_MS, overdue);
    });
  }

  /**
   * Takes a heap snapshot of a worker. A new worker takes the place of the old worker. The old worker
   * drains, sends the snapshot and exits.
   *
   * @throws InspectionError before the first byte, or after it.
   */
  async *snapshot(slot: number, gone: AbortSignal): AsyncGenerator<Buffer, void> {
    const { blockedForMs, problem } = await this.stack(slot);
    if (blockedForMs !== null || problem !== null) {
      const message = `worker=${slot} is blocked, and cannot drain for a heap snapshot; take a heap profile, which it can`;
      throw new InspectionError('blocked', message);
    }
    yield* this.#exclusively(slot, gone, (worker, transfer) => {
      roomForSnapshot(worker, this.memory);
      const left = this.replace(slot, 'heap snapshot', { snapshotTo: transfer.path }).then(
        ({ reason }) =>
          new InspectionError(
            'failed',
            reason === null
              ? `worker=${slot} was replaced and left no snapshot; ask again`
              : `worker=${slot} is not replaced, and so serves on: ${reason}`,
          ),
      );
      return transfer.read(SNAPSHOT_SILENCE_MS, left);
    });
  }

  async *#exclusively(
    slot: number,
    gone: AbortSignal,
    take: (worker: WorkerHandle, transfer: Transfer) => AsyncGenerator<Buffer, void>,
  ): AsyncGenerator<Buffer, void> {
    const { id, worker } = this.#find(slot);
    if (this.#recorded.has(id)) {
      const message = `worker=${slot} is being profiled already; ask again when that is over`;
      throw new InspectionError('busy', message);
    }
    this.#recorded.add(id);
    try {
      const transfer = await Transfer.open(gone);
      try {
        yield* take(worker, transfer);
      } finally {
        await transfer.close();
      }
    } finally {
      this.#recorded.delete(id);
    }
  }

  #ask(id: WorkerId, worker: WorkerHandle): AwaitedStack {
    const { slot, pid } = worker.identity;
    const asked = (this.#asked += 1);
    if (!worker.askWatchdog({ type: 'stack', id: asked })) throw noWatchdog(slot);
    let resolve!: (stack: WorkerStack) => void;
    const promise = new Promise<WorkerStack>((resolved) => (resolve = resolved));
    const timer = setTimeout(() => awaited.settle(undefined), STACK_TIMEOUT_MS);
    const awaited: AwaitedStack = {
      promise,
      settle: (answer) => {
        // this is the answer to an earlier request
        if (answer !== undefined && answer.id !== asked) return;
        clearTimeout(timer);
        this.#stacks.delete(id);
        const { blockedForMs = null, requests = [], frames = [] } = answer ?? {};
        const silence = worker.known() === undefined ? ENDED : STOPPED;
        const problem = answer === undefined ? silence : answer.answered ? null : NATIVE;
        resolve({ slot, pid, blockedForMs, requests, frames, problem });
      },
    };
    this.#stacks.set(id, awaited);
    return awaited;
  }

  #find(slot: number): { readonly id: WorkerId; readonly worker: WorkerHandle } {
    const id = this.table.state.slots[slot]?.worker;
    const worker = id === undefined ? undefined : this.table.find(id);
    if (id !== undefined && worker !== undefined) return { id, worker };
    const message = `there is no worker in slot ${slot} now; look at the slots with nestjs-cluster status`;
    throw new InspectionError('no-worker', message);
  }
}

function noWatchdog(slot: number): InspectionError {
  const message = `worker=${slot} has no watchdog, which is what looks into it; do not set the option watchdog to false`;
  return new InspectionError('no-watchdog', message);
}

function after(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
