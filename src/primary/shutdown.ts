import { constants } from 'node:os';
import { type ClusterError, WorkersFailedError } from '../errors/index.js';
import type { EmitEvent } from '../events/index.js';
import { type ErrorReport, LEAVE_SIGNAL } from '../ipc/index.js';
import type { ResolvedClusterOptions } from '../options/index.js';
import { beginDeparture } from './departure.js';
import { ClusterAcceptors } from './listening/cluster-acceptors.js';
import type { Listening } from './listening/listening.interface.js';
import type { Later } from './later.js';
import type { WorkerHandle } from './worker-handle.js';
import type { WorkerTable } from './worker-table.js';

/** Why nothing else is begun any more. */
export const SHUTTING_DOWN = 'the cluster is shutting down';

/** What each further request to stop does. */
const STOP_LEVELS = ['drain', 'destroy', 'kill'] as const;

/** The end of the cluster: asked for, ever harder, or forced by workers that do not stay up. */
export class Shutdown {
  #resolveEnded!: (exitCode: number) => void;
  /** Resolves with the exit code once no worker is left. */
  readonly ended = new Promise<number>((resolve) => (this.#resolveEnded = resolve));
  /** `undefined` while the cluster runs, else an index of `STOP_LEVELS`. */
  #level: number | undefined;
  #exitCode = 0;
  /** What the shutdown hooks of the workers' apps are told. */
  #signal: NodeJS.Signals = LEAVE_SIGNAL;

  constructor(
    private readonly options: ResolvedClusterOptions,
    private readonly table: WorkerTable,
    private readonly listening: Listening,
    private readonly emit: EmitEvent,
    private readonly later: Later,
    /** Whatever else was under way is given up. */
    private readonly onBegin: () => void,
    private readonly acceptors: Pick<ClusterAcceptors, 'close'> = new ClusterAcceptors(),
  ) {}

  get begun(): boolean {
    return this.#level !== undefined;
  }

  /** Stops the cluster; each further signal more harshly. A call has no impatience. */
  request(reason: string, signalNumber: number): void {
    if (this.begun && signalNumber === 0) return;
    const level = this.#level === undefined ? 0 : this.#level + 1;
    if (level > 0) this.#exitCode = 128 + signalNumber;
    const { workers } = this.table;
    const force = STOP_LEVELS[level] ?? 'kill';
    this.emit('stopping', { reason, workers: workers.length, force });
    if (level === 0) {
      this.#signal = nameOf(signalNumber) ?? LEAVE_SIGNAL;
      return this.#begin();
    }
    this.#level = level;
    for (const worker of workers) {
      if (force === 'destroy' && worker.connected) worker.send({ type: 'force' });
      else worker.kill('SIGKILL');
    }
  }

  /** The cluster cannot go on: whoever still serves drains. */
  giveUp(error: ClusterError): void {
    if (this.begun) return;
    const { message, exitCode } = error;
    const cause = error instanceof WorkersFailedError ? (error.cause as ErrorReport) : null;
    this.emit('failed', { message, exitCode, error: cause });
    this.#exitCode = exitCode;
    this.#begin();
  }

  /** A worker has ended, as it should have or not. */
  workerEnded(well: boolean): void {
    if (!this.begun) return;
    // Whoever asked should know that not all went well.
    if (!well) this.#exitCode ||= 1;
    this.#endIfEmpty();
  }

  #begin(): void {
    this.#level = 0;
    // Workers listen on as long as their lame duck lasts; then whoever comes must be refused, not
    // left waiting on a socket that only the primary still holds.
    this.later(this.options.shutdown.lameDuckMs, () => this.#release());
    for (const slot of this.table.slots) slot.cancelStart();
    for (const worker of this.table.workers) this.#dismiss(worker);
    this.onBegin();
    this.#endIfEmpty();
  }

  #dismiss(worker: WorkerHandle): void {
    if (worker.state === 'draining') return;
    this.table.slotOf(worker).retire(worker);
    beginDeparture(worker, 'shutdown', this.options.shutdown, this.emit, this.#signal);
  }

  /** Lets go of the sockets, and tells the workers: they serve what waits, and are the last to close. */
  #release(): void {
    this.#closeSockets();
    // By the queue: whatever goes wrong on the way to one worker, the others are told.
    const tell = (worker: WorkerHandle) => this.later(0, () => worker.send({ type: 'released' }));
    const tellAll = (): void => this.table.workers.forEach(tell);
    void this.acceptors.close().then(tellAll, tellAll);
  }

  #closeSockets(): void {
    const reset = this.listening.close();
    if (reset === 0) return;
    const message = `reset ${reset} connections that waited for a worker: there was none left`;
    this.emit('warning', { message });
  }

  #endIfEmpty(): void {
    if (this.table.workers.length > 0) return;
    this.#closeSockets();
    this.#resolveEnded(this.#exitCode);
  }
}

/** @returns `undefined` for the 0 of a call. */
function nameOf(signalNumber: number): NodeJS.Signals | undefined {
  const names = Object.entries(constants.signals) as [NodeJS.Signals, number][];
  return names.find(([, number]) => number === signalNumber)?.[0];
}
