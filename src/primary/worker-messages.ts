import { OnceAMinute } from '../contract/errors/index.js';
import type { EmitEvent } from '../contract/log/events.js';
import { cutText, reportError } from '../contract/errors/error-report.js';
import {
  foreignVersionOf,
  isOurs,
  parseWorkerMessage,
  type WorkerMessage,
} from '../contract/messages.js';
import { readOomKills } from '../contract/process/machine.js';
import type { ClusterEvent, WorkerEvent } from '../decide/cluster-event.js';
import type { WorkerId } from '../decide/cluster-state.js';
import type { Balance } from './balance.js';
import type { ProcessEvent } from './fork-worker.js';
import type { Inspections } from './inspections.js';
import type { Listening } from './listening/listening.js';
import type { MetricsRelay } from './metrics-relay.js';
import type { PackageThreads } from './package-threads.js';
import type { WorkerHandle } from './worker-handle.js';
import type { WorkerTable } from './worker-table.js';

/** Maximum of different warnings; more are dropped and counted. An app that varies them would fill the log. */
const MAX_WARNINGS = 100;

/** Types of messages that the watchdog sends, even while the event loop is blocked. */
const BY_WATCHDOG: ReadonlySet<WorkerMessage['type']> = new Set([
  'blocked',
  'resumed',
  'stack',
  'recorded',
]);

interface Exchange {
  readonly listening: Listening;
  readonly table: WorkerTable;
  readonly relay: MetricsRelay;
  readonly balance: Balance;
  readonly inspections: Inspections;
  readonly emit: EmitEvent;
  readonly threads: Pick<PackageThreads, 'path'>;
}

/**
 * Receives what the processes of workers send. Answers the messages that need no decision, and turns
 * the other messages into events of the core.
 */
export class WorkerMessages {
  readonly #warned = new Set<string>();
  readonly #dropped = new OnceAMinute((message) => this.to.emit('warning', { message }));
  readonly #oomWatch = new OomWatch();

  constructor(private readonly to: Exchange) {}

  receive(worker: WorkerId, told: ProcessEvent): ClusterEvent | undefined {
    switch (told.type) {
      case 'message': {
        const handle = this.to.table.find(worker);
        return handle && this.#onMessage(worker, handle, told.message);
      }
      case 'channel-error':
      case 'channel-broken': {
        const event = { type: told.type, error: reportError(told.error) };
        return { type: 'worker', worker, event };
      }
      case 'exit': {
        const oomKill = this.#oomWatch.hasKilled();
        const at = new Date().toISOString();
        return { type: 'worker', worker, event: { type: 'exited', exit: told.exit, oomKill, at } };
      }
    }
  }

  #onMessage(id: WorkerId, worker: WorkerHandle, raw: unknown): ClusterEvent | undefined {
    const message = parseWorkerMessage(raw);
    if (message === undefined) return this.#onUnknown(id, worker, raw);
    // A message of the watchdog does not prove that the event loop runs, except `resumed`.
    if (message.type === 'resumed' || !BY_WATCHDOG.has(message.type)) {
      worker.seenAt = performance.now();
    }
    // The watchdog has its own pipe, so its messages do not prove that the channel works.
    if (!BY_WATCHDOG.has(message.type)) worker.isUnderstood = true;
    if ('stats' in message) worker.report(message.stats);
    const { slot } = worker.identity;
    const requesterOf = (asked: { id: number }) =>
      ({ by: 'worker', worker: id, slot, id: asked.id }) as const;
    // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- the type of `#answer()` holds the rest
    switch (message.type) {
      case 'reload-request': {
        const reason = `reload() in worker=${slot}`;
        return { type: 'reload', reason, requester: requesterOf(message) };
      }
      case 'scale-request': {
        const { workers } = message;
        const reason = `scale() in worker=${slot}`;
        return { type: 'scale', workers, reason, requester: requesterOf(message) };
      }
      case 'restart-request': {
        const reason = `restart() in worker=${slot}`;
        return { type: 'restart', slot: message.slot, reason, requester: requesterOf(message) };
      }
      default: {
        const event = this.#answer(worker, message);
        return event && { type: 'worker', worker: id, event };
      }
    }
  }

  /** Answers a message that needs no decision of the core. Returns any other message as an event. */
  #answer(
    worker: WorkerHandle,
    message: Exclude<WorkerMessage, { type: `${'reload' | 'scale' | 'restart'}-request` }>,
  ): WorkerEvent | undefined {
    const { balance, inspections, listening, relay, table } = this.to;
    const now = performance.now();
    // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- the type of the result holds the rest
    switch (message.type) {
      case 'ready':
        return { ...message, residentBytes: worker.reading().residentBytes };
      case 'listen-request':
        if (!worker.hasSocket) listening.grant(worker);
        worker.hasSocket = true;
        return undefined;
      case 'load':
        balance.report(worker, message);
        return undefined;
      case 'snapshot-request':
        if (!worker.congested) {
          worker.send({ type: 'answer', id: message.id, result: table.snapshot() });
        }
        return undefined;
      case 'collect-request':
        relay.collectFor(worker, message.id, message.body, now - message.ageMs);
        return undefined;
      case 'metrics':
        relay.store(worker, message.body, now - message.ageMs);
        return undefined;
      case 'thread-request':
        void this.#tellThread(worker, message.id, message.name);
        return undefined;
      case 'subscribe':
        worker.wants = new Set(message.events);
        return undefined;
      case 'warning':
        this.#warnOnce(cutText(message.message), worker);
        return undefined;
      case 'stack':
      case 'recorded':
        inspections.answered(message);
        return undefined;
      default:
        return message;
    }
  }

  async #tellThread(worker: WorkerHandle, id: number, name: string): Promise<void> {
    try {
      worker.send({ type: 'answer', id, result: await this.to.threads.path(name) });
    } catch (error) {
      worker.send({ type: 'answer', id, refusal: reportError(error) });
    }
  }

  /** Ignores the app's own messages. Warns once of invalid messages of this package. */
  #onUnknown(id: WorkerId, worker: WorkerHandle, raw: unknown): ClusterEvent | undefined {
    if (!isOurs(raw)) return undefined;
    const version = foreignVersionOf(raw);
    // No message of this worker is understood. Without this event, the worker would wait until it is killed.
    if (version !== undefined && worker.state === 'starting' && !worker.isUnderstood) {
      return { type: 'worker', worker: id, event: { type: 'foreign-version', version } };
    }
    this.#warnOnce(
      'dropped a message that is not of this version of nestjs-cluster; restart the cluster after an update of it',
      worker,
    );
    return undefined;
  }

  /** Workers of the same app send the same warning, so each warning is logged only once. */
  #warnOnce(message: string, worker: WorkerHandle): void {
    if (this.#warned.has(message)) return;
    if (this.#warned.size >= MAX_WARNINGS) {
      const why = `${MAX_WARNINGS} different ones are the most that are logged`;
      return this.#dropped.say(`dropped a warning, because ${why}`, 'dropped');
    }
    this.#warned.add(message);
    this.to.emit('warning', { message, worker: worker.identity });
  }
}

/** Detects kills by the kernel's out-of-memory killer, which counts them for each control group. */
export class OomWatch {
  #seen: number | undefined;

  constructor(private readonly count: () => number | undefined = readOomKills) {
    this.#seen = count();
  }

  /** Whether the out-of-memory killer has killed a process since the last call. */
  hasKilled(): boolean {
    const before = this.#seen;
    const now = this.count();
    // If no descriptor is free, the count is unknown. The last known count is kept for comparison.
    this.#seen = now ?? before;
    return before !== undefined && now !== undefined && now > before;
  }
}
