import { OnceAMinute } from '../contract/errors/errors.js';
import type { EmitEvent } from '../contract/log/events.js';
import { cutText, reportError } from '../contract/errors/error-report.js';
import {
  closeHandle,
  foreignVersionOf,
  isOurs,
  parseWorkerMessage,
  type Results,
  type WorkerMessage,
} from '../contract/messages.js';
import { readOomKills } from '../contract/process/machine.js';
import type { ClusterEvent } from '../decide/input.js';
import type { WorkerId } from '../decide/cluster-state.js';
import type { Balance } from './balance.js';
import type { ProcessEvent } from './fork-worker.js';
import type { Inspections } from './inspections.js';
import type { Listening } from './listening/listening.js';
import type { MetricsRelay } from './metrics-relay.js';
import type { PackageThreads } from './package-threads.js';
import type { ServerHandle } from './listening/bound-socket.js';
import { isResponsive, type WorkerHandle } from './worker-handle.js';
import type { WorkerTable } from './worker-table.js';

/** Maximum number of different warnings; more are dropped and counted. Warnings with varying text would fill the log. */
const MAX_WARNINGS = 100;

/** The watchdog's messages, which are sent even while the event loop is blocked. */
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
 * Receives the messages and events of worker processes. Answers requests that need no decision, and
 * turns all other messages into events for the core.
 */
export class WorkerMessages {
  readonly #warned = new Set<string>();
  readonly #dropped = new OnceAMinute((message) => this.to.emit('warning', { message }));
  readonly #oomWatch = new OomWatch();

  constructor(private readonly to: Exchange) {}

  receive(worker: WorkerId, event: ProcessEvent): ClusterEvent | undefined {
    switch (event.type) {
      case 'message': {
        const { message, handle } = event;
        const sender = this.to.table.find(worker);
        if (handle !== undefined) this.#handOver(message, handle, sender?.identity.slot);
        return sender && this.#onMessage(worker, sender, message);
      }
      case 'channel-error':
      case 'channel-broken': {
        const { type, error } = event;
        return { type: 'worker', worker, event: { type, error: reportError(error) } };
      }
      case 'exit': {
        const oomKill = this.#oomWatch.hasKilled();
        const at = new Date().toISOString();
        return { type: 'worker', worker, event: { type: 'exited', exit: event.exit, oomKill, at } };
      }
    }
  }

  #onMessage(id: WorkerId, worker: WorkerHandle, raw: unknown): ClusterEvent | undefined {
    const message = parseWorkerMessage(raw);
    if (message === undefined) return this.#onUnknown(id, worker, raw);
    // The watchdog's messages do not prove that the event loop runs, except `resumed`.
    if (message.type === 'resumed' || !BY_WATCHDOG.has(message.type)) {
      worker.seenAt = performance.now();
    }
    // The watchdog has its own pipe, so its messages do not prove that the channel works.
    if (!BY_WATCHDOG.has(message.type)) worker.isUnderstood = true;
    if ('stats' in message) worker.report(message.stats);
    return this.#handle(id, worker, message);
  }

  /** Handles messages that need no decision. Returns any other message as an event for the core. */
  #handle(id: WorkerId, worker: WorkerHandle, message: WorkerMessage): ClusterEvent | undefined {
    const { balance, inspections, listening, relay, table, threads } = this.to;
    const now = performance.now();
    const { slot } = worker.identity;
    const asked = (what: string, request: number) => ({
      reason: `${what}() in worker=${slot}`,
      requester: { by: 'worker', worker: id, slot, id: request } as const,
    });
    // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- the type of the result holds the rest
    switch (message.type) {
      case 'reload-request':
        return { type: 'reload', ...asked('reload', message.id) };
      case 'scale-request':
        return { type: 'scale', workers: message.workers, ...asked('scale', message.id) };
      case 'restart-request':
        return { type: 'restart', slot: message.slot, ...asked('restart', message.id) };
      case 'ready': {
        const { residentBytes } = worker.reading();
        return { type: 'worker', worker: id, event: { ...message, residentBytes } };
      }
      case 'listen-request':
        if (!worker.hasSocket) listening.grant(worker);
        worker.hasSocket = true;
        return undefined;
      case 'load':
        balance.report(worker, message);
        return undefined;
      case 'snapshot-request':
        if (!worker.congested) worker.caller(message.id).resolve(table.snapshot());
        return undefined;
      case 'collect-request':
        relay.store(worker, message.body, now - message.ageMs);
        return this.#answer(worker, message.id, relay.collect(worker));
      case 'connection': // receive() has passed the handle to another worker
        return undefined;
      case 'metrics':
        relay.store(worker, message.body, now - message.ageMs);
        return undefined;
      case 'thread-request':
        return this.#answer(worker, message.id, threads.path(message.name));
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
        return { type: 'worker', worker: id, event: message };
    }
  }

  /** Sends a connection to the slot's current worker, or else to any other ready worker. */
  #handOver(message: unknown, handle: unknown, slot: number | undefined): void {
    const now = performance.now();
    const ready = this.to.table.workers.filter(({ state }) => state === 'ready');
    const responsive = ready.filter((each) => isResponsive(each, now));
    const heir =
      responsive.find(({ identity }) => identity.slot === slot) ??
      responsive[Math.floor(Math.random() * responsive.length)] ??
      ready[0];
    const isExpected = parseWorkerMessage(message)?.type === 'connection';
    if (isExpected && heir !== undefined) heir.handOver(handle as ServerHandle);
    else closeHandle(handle);
  }

  #answer(worker: WorkerHandle, id: number, result: Promise<Results[keyof Results]>): undefined {
    const { resolve, reject } = worker.caller(id);
    result.then(resolve, reject).catch((error: unknown) => {
      const message = "unexpected error while answering the worker's request";
      this.to.emit('warning', { message, error: reportError(error) });
    });
  }

  /** Ignores the app's own messages. Warns once about invalid messages of this package. */
  #onUnknown(id: WorkerId, worker: WorkerHandle, raw: unknown): ClusterEvent | undefined {
    if (!isOurs(raw)) return undefined;
    const version = foreignVersionOf(raw);
    // The worker uses another protocol version. Without this event, it would wait until it is killed.
    if (version !== undefined && worker.state === 'starting' && !worker.isUnderstood) {
      return { type: 'worker', worker: id, event: { type: 'foreign-version', version } };
    }
    this.#warnOnce(
      'dropped a message from another version of nestjs-cluster; restart the cluster after an update',
      worker,
    );
    return undefined;
  }

  /** Workers of the same app send the same warning, so each warning is logged only once. */
  #warnOnce(message: string, worker: WorkerHandle): void {
    if (this.#warned.has(message)) return;
    if (this.#warned.size >= MAX_WARNINGS) {
      const why = `dropped a warning, because only ${MAX_WARNINGS} different warnings are logged`;
      return this.#dropped.say(why, 'dropped');
    }
    this.#warned.add(message);
    this.to.emit('warning', { message, worker: worker.identity });
  }
}

/** Detects out-of-memory kills by the kernel, using the control group's counter. */
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
