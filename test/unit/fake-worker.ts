import type { PrimaryMessage } from '../../src/ipc/index.js';
import { WorkerHandle, type WorkerProcess } from '../../src/primary/worker-handle.js';
import type { WorkerState, WorkerStats } from '../../src/snapshot/index.js';

export const STATS: WorkerStats = {
  residentMemoryBytes: 100_000_000,
  heapUsedBytes: 50_000_000,
  eventLoopUtilization: 0.25,
  eventLoopDelayP99Ms: 12,
  cpuSecondsTotal: 1.5,
  gcSecondsTotal: 0.25,
  openConnections: 3,
  requestsInFlight: 2,
  requestsTotal: 10,
  rebalancedConnectionsTotal: 0,
  logLinesDroppedTotal: 2,
  droppedConnectionsTotal: 0,
};

/** A worker of the primary without a process: it keeps what it is sent. */
export class FakeWorker {
  readonly handle: WorkerHandle;
  connected = true;
  /** The kernel takes nothing: what is sent waits. */
  clogged = false;
  readonly signals: NodeJS.Signals[] = [];
  /** What was sent beside a message. */
  readonly handles: unknown[] = [];
  readonly #sent: PrimaryMessage[] = [];

  constructor(
    about: { slot?: number; pid?: number; generation?: number; state?: WorkerState } = {},
  ) {
    const { slot = 0, pid = 1_000 + slot, generation = 0, state = 'ready' } = about;
    const channel: WorkerProcess = {
      isConnected: () => this.connected,
      send: (message, handle: unknown, taken) => {
        if (handle !== undefined) this.handles.push(handle);
        // As on the wire: a copy, made now.
        this.#sent.push(JSON.parse(JSON.stringify(message)) as PrimaryMessage);
        if (!this.clogged) taken();
        return true;
      },
      kill: (signal) => void this.signals.push(signal),
    };
    this.handle = new WorkerHandle({ slot, pid, generation }, channel);
    if (state !== 'starting') {
      this.handle.readyAt = performance.now();
      this.handle.enter(state);
    }
  }

  /** Every message of one type that this worker was sent. */
  sent<T extends PrimaryMessage['type']>(type: T): (PrimaryMessage & { type: T })[] {
    return this.#sent.filter(
      (message): message is PrimaryMessage & { type: T } => message.type === type,
    );
  }
}
