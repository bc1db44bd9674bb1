import { type ClusterEventMap, type EmitEvent, workerExitIn } from '../../contract/events/index.js';
import type { Fingerprint, WorkerMessage } from '../../contract/ipc/index.js';
import { MAX_SUSPECTS, NO_ROUTE } from '../../contract/ipc/index.js';
import type { FailureCause, WorkerIdentity } from '../../contract/snapshot/index.js';
import {
  NO_QUARANTINE,
  type Quarantined,
  type QuarantineState,
  requestLived,
  trialLived,
  trialsDue,
  workerEnded,
} from '../decide/policies/quarantine.policy.js';
import type { WorkerHandle } from '../processes/worker-handle.js';
import type { WorkerTable } from '../processes/worker-table.js';

/** The interval of the checks for due trials and for the end of watching. */
export const QUARANTINE_TICK_MS = 1_000;

/** Causes of a worker's end that may come from a request. A kill from outside or a failed boot does not. */
const BY_REQUEST: ReadonlySet<FailureCause> = new Set(['crash', 'exit', 'oom', 'hang', 'memory']);

/** Maximum of requests of one worker that are followed at once. Further requests are ignored. */
const MAX_FLIGHTS = 1_000;

interface Followed {
  /** Requests that the worker is handling, by their numbers. */
  readonly flights: Map<number, Fingerprint>;
  /** The worker's report of the requests that may end it. */
  told: (WorkerMessage & { type: 'suspects' }) | undefined;
  /** The id of the quarantine entry that the worker is trying. */
  trial: number | undefined;
  /** Whether the worker's end has been counted. */
  counted: boolean;
}

export type QuarantineMessage = WorkerMessage & { type: 'suspects' | 'flight' | 'trial' };

/**
 * Learns which requests end workers, makes every worker keep such requests from the app, and lets
 * one worker try such a request from time to time. The policy decides. This class remembers the
 * facts about workers, and sends the entries to the workers.
 */
export class Quarantine {
  #state: QuarantineState = NO_QUARANTINE;
  /** Facts about the workers, by process id. */
  readonly #workers = new Map<number, Followed>();
  /** The process id of the worker that may try a request, by the id of the entry. */
  readonly #mayTry = new Map<number, number>();
  #turn = 0;
  #watches = false;

  constructor(
    private readonly table: Pick<WorkerTable, 'workers' | 'quarantined'>,
    private readonly emit: EmitEvent,
  ) {}

  /** Sends the entries to a worker that is about to listen, before its first connection. */
  greet(worker: WorkerHandle): void {
    if (this.#watches || this.#state.quarantined.length > 0) this.#tell(worker);
  }

  hear({ identity: { pid } }: WorkerHandle, message: QuarantineMessage): void {
    const worker = this.#of(pid);
    switch (message.type) {
      case 'suspects':
        worker.told = message;
        return;
      case 'flight': {
        const { n, began, ended } = message;
        for (const each of ended) this.#lived(worker, each);
        if (began !== undefined && worker.flights.size < MAX_FLIGHTS) worker.flights.set(n, began);
        return;
      }
      case 'trial':
        if (!message.lived) worker.trial = message.id;
        else if (worker.trial === message.id) this.#release(worker, message.id);
    }
  }

  /** Forgets the requests that the worker suspected, because its event loop runs again. */
  resumed({ identity: { pid } }: WorkerHandle): void {
    const worker = this.#workers.get(pid);
    if (worker !== undefined) worker.told = undefined;
  }

  /** Takes the events of the core: counts workers that a request may have ended, forgets those that have exited. */
  readonly observe: EmitEvent = (name, event) => {
    const { worker } = event as { readonly worker?: WorkerIdentity };
    if (worker === undefined) return;
    if (name === 'worker-failing') this.#ended(worker.pid);
    else if (name === 'worker-died') {
      const { cause } = event as ClusterEventMap['worker-died'];
      if (BY_REQUEST.has(cause)) this.#ended(worker.pid);
    }
    if (workerExitIn(name, event) !== undefined) this.#workers.delete(worker.pid);
  };

  tick(): void {
    const now = performance.now();
    if (this.#watches && now >= this.#state.watchedUntil) this.#tellAll();
    const { state, due } = trialsDue(this.#state, now);
    this.#state = state;
    const ready = this.table.workers.filter(({ state: each }) => each === 'ready');
    if (due.length === 0 || ready.length === 0) return;
    for (const id of due) this.#mayTry.set(id, ready[this.#turn++ % ready.length]!.identity.pid);
    this.#tellAll();
  }

  #ended(pid: number): void {
    const worker = this.#of(pid);
    if (worker.counted) return;
    worker.counted = true;
    // The worker ended in a trial, so the request stays in quarantine until the next trial.
    if (worker.trial !== undefined) return;
    const { certain = false, suspects = [...worker.flights.values()].slice(-MAX_SUSPECTS) } =
      worker.told ?? {};
    const before = this.#state.lastId;
    this.#state = workerEnded(this.#state, suspects, certain, performance.now());
    for (const entry of this.#state.quarantined) {
      if (entry.id <= before) continue;
      const { url, deaths } = entry;
      this.emit('quarantined', { ...named(entry), wholeRoute: url === null, deaths });
    }
    this.#tellAll();
    // The request may block other workers too. Only the watchdogs of those workers can report that.
    for (const each of this.table.workers) {
      if (each.identity.pid !== pid) each.askWatchdog({ type: 'report-block' });
    }
  }

  #lived(worker: Followed, n: number): void {
    const request = worker.flights.get(n);
    worker.flights.delete(n);
    if (request !== undefined && !worker.counted) this.#state = requestLived(this.#state, request);
  }

  #release(worker: Followed, id: number): void {
    worker.trial = undefined;
    const entry = this.#state.quarantined.find((each) => each.id === id);
    if (entry === undefined || worker.counted) return;
    this.#state = trialLived(this.#state, id);
    this.#mayTry.delete(id);
    this.emit('quarantine-ended', named(entry));
    this.#tellAll();
  }

  #of(pid: number): Followed {
    const known = this.#workers.get(pid);
    if (known !== undefined) return known;
    const followed = { flights: new Map(), told: undefined, trial: undefined, counted: false };
    this.#workers.set(pid, followed);
    return followed;
  }

  #tellAll(): void {
    this.table.quarantined = this.#state.quarantined.length;
    this.#watches = performance.now() < this.#state.watchedUntil;
    for (const worker of this.table.workers) if (worker.hasSocket) this.#tell(worker);
  }

  #tell(worker: WorkerHandle): void {
    const entries = this.#state.quarantined.map(({ id, method, route, url }) => {
      const trial = this.#mayTry.get(id) === worker.identity.pid;
      return { id, method, route, url, trial };
    });
    worker.send({ type: 'quarantine', watch: this.#watches, entries });
  }
}

/** A request as events name it. */
function named({ method, route, path }: Quarantined) {
  return { method, route: route === NO_ROUTE ? null : route, path };
}
