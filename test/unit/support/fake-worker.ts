import {
  type DrainReport,
  type PrimaryMessage,
  seal,
  type WorkerMessage,
} from '../../../src/contract/messages.js';
import type { Worker } from '../../../src/decide/cluster-state.js';
import type { ProcessEvent } from '../../../src/primary/fork-worker.js';
import type { ProcessExit } from '../../../src/decide/policies/failure.policy.js';
import { WorkerHandle, type WorkerProcess } from '../../../src/primary/worker-handle.js';
import type { WorkerSnapshot, WorkerState } from '../../../src/contract/snapshot/types.js';
import type { WorkerStats } from '../../../src/contract/stats.js';

export const STATS: WorkerStats = {
  residentMemoryBytes: 100_000_000,
  heapUsedBytes: 50_000_000,
  eventLoopUtilization: 0.25,
  eventLoopDelayP99Ms: 12,
  cpuSecondsTotal: 1.5,
  gcSecondsTotal: 0.25,
  threadUtilization: 0,
  openConnections: 3,
  requestsInFlight: 2,
  requestsTotal: 10,
  rebalancedConnectionsTotal: 0,
  logLinesDroppedTotal: 2,
  droppedConnectionsTotal: 0,
};

/** A worker as the snapshot shows it. */
export const workerSnapshot = (about: Partial<WorkerSnapshot> = {}): WorkerSnapshot => ({
  slot: 0,
  pid: 100,
  generation: 0,
  state: 'ready',
  uptimeSeconds: 5,
  restarts: 0,
  restartsByCause: {},
  lastExit: null,
  degraded: false,
  abortedRequestsTotal: 0,
  heartbeatAgeMs: 3,
  responsive: true,
  ...STATS,
  ...about,
});

/** A worker as the core knows it, in any state. */
export function knownWorker(
  about: Partial<Worker> & { readonly state: Exclude<WorkerState, 'exited'> },
): Worker {
  const common = {
    id: 1,
    slot: 0,
    generation: 0,
    startedAt: performance.now(),
    debugged: false,
    ping: undefined,
    block: undefined,
    error: null,
    fatal: false,
    failure: undefined,
    jitter: 0,
    follows: false,
    lapsed: false,
  };
  const ready = { readyAt: performance.now() };
  const more = {
    starting: {},
    ready: {
      ...ready,
      threads: 'settled',
      largeAtStart: false,
      leaving: undefined,
    },
    draining: { ...ready, retirement: undefined, overdue: false, drain: undefined },
  };
  return { ...common, ...more[about.state], ...about } as Worker;
}

/** A worker of the primary without a process: it keeps what it is sent. */
export class FakeWorker {
  readonly handle: WorkerHandle;
  connected = true;
  /** If set, each attempt to send a message throws this error. */
  failsToSend: Error | undefined;
  /** Whether the channel is full, so that sent messages wait. */
  clogged = false;
  /** Whether the worker answers each ping at once. */
  lively = false;
  readonly signals: NodeJS.Signals[] = [];
  /** Everything that it was sent, oldest first. */
  readonly messages: PrimaryMessage[] = [];
  /** The handle that was sent with each message. */
  readonly handles: unknown[] = [];
  readonly #waiting: (() => void)[] = [];

  constructor(
    about: { slot?: number; pid?: number; generation?: number; state?: WorkerState } = {},
    /** Emits an event of the worker's process. */
    readonly tells: (event: ProcessEvent) => void = () => {},
  ) {
    const { slot = 0, pid = 1_000 + slot, generation = 0, state = 'ready' } = about;
    const channel: WorkerProcess = {
      isConnected: () => this.connected,
      send: (message, handle, taken) => {
        if (this.failsToSend !== undefined) throw this.failsToSend;
        this.handles.push(handle);
        // As on the wire: a copy, made now.
        this.messages.push(JSON.parse(JSON.stringify(message)) as PrimaryMessage);
        if (this.clogged) this.#waiting.push(taken);
        else taken();
        if (this.lively && (message as PrimaryMessage).type === 'ping') this.answerPing();
        return true;
      },
      kill: (signal) => void this.signals.push(signal),
    };
    this.handle = new WorkerHandle({ slot, pid, generation }, channel);
    this.enter(state);
  }

  /** Sends the messages that wait. */
  unclog(): void {
    this.clogged = false;
    for (const taken of this.#waiting.splice(0)) taken();
  }

  /** As the core knows it from now on. */
  enter(state: WorkerState, about: Partial<Worker> = {}): void {
    const { slot, generation } = this.handle.identity;
    const known =
      state === 'exited' ? undefined : knownWorker({ slot, generation, ...about, state });
    this.handle.known = () => known;
  }

  /** Its process sends a message. */
  say(message: WorkerMessage): void {
    this.tells({ type: 'message', message: seal(message) });
  }

  /** It comes up. */
  becomeReady(about: Partial<WorkerMessage & { type: 'ready' }> = {}): void {
    this.say({ ...about, type: 'ready' });
  }

  /** Its process ends. */
  exit(exit: Partial<ProcessExit> = { code: 1 }): void {
    this.connected = false;
    this.tells({ type: 'exit', exit: { code: null, signal: null, ...exit } });
  }

  /** Every message of one type that this worker was sent. */
  sent<T extends PrimaryMessage['type']>(type: T): (PrimaryMessage & { type: T })[] {
    return this.messages.filter(
      (message): message is PrimaryMessage & { type: T } => message.type === type,
    );
  }

  /** The answer to the last health check that it was sent. */
  answerCheck(healthy: boolean, detail: string | null = null): void {
    this.say({ type: 'checked', healthy, detail });
  }

  /** The answer to the last ping that it was sent. */
  answerPing(stats: Partial<WorkerStats> = {}): void {
    const { seq } = this.sent('ping').at(-1)!;
    this.say({ type: 'pong', seq, stats });
  }

  /** Types of everything that it was sent, oldest first. */
  get inbox(): PrimaryMessage['type'][] {
    return this.messages.map(({ type }) => type);
  }

  /** It tells what its drain had to cut off. */
  reportDrain(about: Partial<DrainReport> = {}): void {
    const nothing = { destroyedConnections: 0, destroyedWebSockets: 0, abortedRequests: 0 };
    this.say({ type: 'drained', report: { ...nothing, hookError: null, ...about } });
  }

  /** Sends the worker's statistics without a ping. */
  reports(stats: Partial<WorkerStats>): void {
    this.say({ type: 'pong', seq: 0, stats });
  }
}
