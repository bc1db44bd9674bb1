import type { EmitEvent } from '../events/index.js';
import { foreignVersionOf, isOurs, parseWorkerMessage, type WorkerMessage } from '../ipc/index.js';
import type { Balance } from './balance.js';
import { HandOver } from './hand-over.js';
import type { Heartbeat } from './heartbeat.js';
import type { ServerHandle } from './listening/bound-socket.js';
import type { Listening } from './listening/listening.interface.js';
import type { MetricsRelay } from './metrics-relay.js';
import type { WorkerHandle } from './worker-handle.js';
import type { WorkerTable } from './worker-table.js';

/** Messages that change a worker's life: the supervisor's. */
export type LifecycleMessage = WorkerMessage & {
  type:
    | 'ready'
    | 'boot-failed'
    | 'fatal'
    | 'leaving'
    | 'checked'
    | 'verified'
    | 'blocked'
    | 'reload-request'
    | 'scale-request'
    | 'replace-request';
};

/** Different warnings of workers that are told; an app that varies them would fill the log. */
const MAX_WARNINGS = 100;

/** Answers what workers ask and files what they report. */
export class Switchboard {
  readonly #warned = new Set<string>();
  readonly #handOver: HandOver;

  constructor(
    private readonly listening: Listening,
    private readonly table: WorkerTable,
    private readonly heartbeat: Heartbeat,
    private readonly relay: MetricsRelay,
    private readonly balance: Balance,
    private readonly emit: EmitEvent,
  ) {
    this.#handOver = new HandOver(table);
  }

  /**
   * Takes one message of a worker; returns it where it is not for the switchboard to handle.
   *
   * @param handle what travelled beside it.
   */
  receive(worker: WorkerHandle, raw: unknown, handle?: unknown): LifecycleMessage | undefined {
    const message = parseWorkerMessage(raw);
    if (message === undefined) {
      this.#onUnknown(worker, raw);
      return undefined;
    }
    const now = performance.now();
    // The watchdog's word is no sign of life: it lives on while the event loop is blocked.
    if (message.type !== 'blocked') worker.seenAt = now;
    switch (message.type) {
      case 'listen-request': {
        if (worker.hasSocket) return undefined;
        worker.hasSocket = true;
        this.listening.grant(worker);
        return undefined;
      }
      case 'pong':
        this.heartbeat.pong(worker, message, now);
        return undefined;
      case 'load':
        this.balance.report(worker, message);
        return undefined;
      case 'snapshot-request':
        worker.report(message.stats);
        if (worker.congested) return undefined;
        worker.send({ type: 'snapshot', id: message.id, snapshot: this.table.snapshot() });
        return undefined;
      case 'collect-request':
        worker.report(message.stats);
        this.relay.collectFor(worker, message.id, message.body, now - message.ageMs);
        return undefined;
      case 'metrics':
        worker.report(message.stats);
        this.relay.store(worker, message.body, message.asked, now - message.ageMs);
        return undefined;
      case 'folded':
        this.relay.folded(worker, message.epoch, message.count, message.body);
        return undefined;
      case 'connection':
        this.#handOver.give(worker, message.server, handle as ServerHandle | undefined);
        return undefined;
      case 'drained':
        worker.drain = message.report;
        return undefined;
      case 'warning':
        this.#warnOnce(message.message, worker);
        return undefined;
      case 'resumed':
        this.heartbeat.resumed(worker, now);
        return undefined;
      case 'blocked':
      case 'checked':
      case 'verified':
      case 'reload-request':
      case 'scale-request':
      case 'replace-request':
      case 'ready':
      case 'boot-failed':
      case 'fatal':
      case 'leaving':
        return message;
    }
  }

  /** The app's own messages pass by; a broken one of ours is counted, and worth a line. */
  #onUnknown(worker: WorkerHandle, raw: unknown): void {
    if (!isOurs(raw)) return;
    this.table.slotOf(worker).droppedMessages += 1;
    const version = foreignVersionOf(raw);
    // Its first word: nothing that it says will be understood, and it would wait until it is killed.
    if (version !== undefined && worker.state === 'starting' && worker.seenAt === undefined) {
      worker.condemn(
        'boot',
        `it speaks version ${version} of the protocol of nestjs-cluster and its primary another: a reload cannot bring that in, restart the cluster`,
      );
    } else {
      this.#warnOnce(
        'dropped a message that is not of this version of nestjs-cluster; restart the cluster after an update of it',
        worker,
      );
    }
  }

  /** Every worker of the same app has the same to say: it is said by the first. */
  #warnOnce(message: string, worker: WorkerHandle): void {
    if (this.#warned.has(message) || this.#warned.size >= MAX_WARNINGS) return;
    this.#warned.add(message);
    this.emit('warning', { message, worker: worker.identity });
  }
}
