import { readFileSync } from 'node:fs';
import type { EmitEvent } from '../contract/log/events.js';
import { reportError } from '../contract/errors/error-report.js';
import { ClusterAddressError } from '../contract/errors/errors.js';
import {
  closeHandle,
  type PrimaryMessage,
  type Results,
  seal,
  type WatchdogRequest,
} from '../contract/messages.js';
import type { WorkerIdentity, WorkerState } from '../contract/snapshot/types.js';
import { type WorkerStats, pick, STAT_NAMES } from '../contract/stats.js';
import type { Reading } from '../decide/input.js';
import type { Worker } from '../decide/cluster-state.js';
import type { ServerHandle } from './listening/bound-socket.js';

/** Maximum number of unwritten messages to a worker. Further messages are dropped, except {@link DECISIVE}. */
const MAX_UNSENT = 64;

/** Maximum number of connections that wait for a worker. More are closed, because each uses a descriptor of the primary. */
const MAX_CONNECTIONS = 2_000;

/** Above this number of unwritten messages, events are dropped to leave room for other messages. */
const MAX_UNSENT_EVENTS = 32;

/** Messages that are sent even to a congested worker. All of them are rare. */
export const DECISIVE: ReadonlySet<PrimaryMessage['type']> = new Set([
  'adopt',
  'release',
  'drain',
  'released',
  'force',
]);

/** A worker is unresponsive if a ping is unanswered for this long. It counts as hung only after `hangTimeoutMs`. */
const UNRESPONSIVE_AFTER_MS = 2_000;

export const NO_PID = 0;

/** The part of Node's `Worker` that is used here. A no-op implementation stands in for a failed fork. */
export interface WorkerProcess {
  isConnected(): boolean;
  send(message: unknown, handle: never, callback: () => void): unknown;
  kill(signal: NodeJS.Signals): void;
  /** Writes a line to the worker's watchdog; `undefined` if the worker has none. */
  readonly askWatchdog?: ((line: string) => void) | undefined;
}

/** Receives the answer to one request, made by a function call or a worker. */
export interface Caller {
  readonly resolve: (result: Results[keyof Results]) => void;
  readonly reject: (error: Error) => void;
}

/** Whether a worker answers its pings in time. A blocked or stopped worker does not. */
export function isResponsive({ known }: Pick<WorkerHandle, 'known'>, now: number): boolean {
  return now - (known()?.ping?.sentAt ?? now) < UNRESPONSIVE_AFTER_MS;
}

/** A worker's process: its channel and its reports. The core makes all decisions about it. */
export class WorkerHandle {
  /** Looks up the worker in the core's state; `undefined` once it has exited. Set by `WorkerTable`. */
  known: () => Worker | undefined = () => undefined;
  /** When the worker last sent a message that proves that its event loop runs; monotonic ms. */
  seenAt: number | undefined;
  /** Whether the worker has sent a message with this protocol version over its channel. */
  isUnderstood = false;
  stats: Partial<WorkerStats> | undefined;
  /** Whether the worker was given the listening socket. A worker gets it only once. */
  hasSocket = false;
  wants: ReadonlySet<string> = new Set();
  /** The number of events dropped since the last one sent. */
  #missed = 0;
  /** The number of messages not yet written to the channel. */
  #unsent = 0;
  /** The connections to send to the worker. The first is being sent. */
  readonly #connections: ServerHandle[] = [];

  constructor(
    readonly identity: WorkerIdentity,
    private readonly process: WorkerProcess,
  ) {}

  get state(): WorkerState {
    return this.known()?.state ?? 'exited';
  }

  /** Whether the channel is open and empty, so that the next message is read soon. */
  get reachable(): boolean {
    return this.process.isConnected() && this.#unsent === 0;
  }

  /** Whether too many messages wait, because the worker does not read them. */
  get congested(): boolean {
    return this.#unsent >= MAX_UNSENT;
  }

  /** Sends an idle connection to the worker. Sends one at a time, so that a ping never waits behind many. */
  handOver(connection: ServerHandle): void {
    if (this.#connections.length >= MAX_CONNECTIONS) return closeHandle(connection);
    if (this.#connections.push(connection) === 1) this.#sendConnection();
  }

  /** Closes the unsent connections of a worker that has exited. Node would neither send nor close them. */
  closeConnections(): void {
    this.#connections.splice(0).forEach(closeHandle);
  }

  #sendConnection(): void {
    const [connection] = this.#connections;
    if (connection === undefined || !this.process.isConnected()) return;
    this.process.send(seal({ type: 'connection' }), connection as never, () => {
      closeHandle(this.#connections.shift()); // this process's copy
      this.#sendConnection();
    });
  }

  /** Sends a message. A closed channel drops it. A congested one sends only {@link DECISIVE} messages. */
  send(message: PrimaryMessage, handle?: ServerHandle): void {
    if (!this.process.isConnected()) return;
    if (this.congested && !DECISIVE.has(message.type)) return;
    this.#unsent += 1;
    try {
      // Node accepts raw handles too, but its types do not.
      this.process.send(seal(message), handle as never, () => void (this.#unsent -= 1));
    } catch (error) {
      this.#unsent -= 1; // Node did not queue the message and will not call the callback
      throw error;
    }
  }

  /** The caller that receives the answer to the request with this id. */
  caller(id: number): Caller {
    return {
      resolve: (result) => this.send({ type: 'answer', id, result }),
      reject: (error) => {
        const { address, cause } =
          error instanceof ClusterAddressError ? error : { address: undefined, cause: error };
        this.send({ type: 'answer', id, refusal: { ...reportError(cause), address } });
      },
    };
  }

  /** Sends an event if the worker has subscribed to it. If too many messages are unread, drops and counts the event. */
  readonly tell: EmitEvent = (name, event) => {
    if (!this.wants.has(name)) return;
    if (this.#unsent >= MAX_UNSENT_EVENTS) {
      this.#missed += 1;
      return;
    }
    const missed = this.#missed;
    this.#missed = 0;
    this.send({ type: 'event', name, event, missed });
  };

  /** Asks the watchdog, which runs even if the worker is blocked. @returns whether the worker has a watchdog. */
  askWatchdog(request: WatchdogRequest): boolean {
    this.process.askWatchdog?.(`${JSON.stringify(request)}\n`);
    return this.process.askWatchdog !== undefined;
  }

  /** Stores the reported statistics. A missing or invalid value does not replace the last value. */
  report(stats: Partial<WorkerStats>): void {
    const valid = STAT_NAMES.filter((name) => Number.isFinite(stats[name]));
    this.stats = { ...this.stats, ...pick(stats, valid) };
  }

  /** The values limited by the options `memory` and `recycle`. */
  reading(): Reading {
    const { residentMemoryBytes = 0, requestsTotal = 0 } = this.stats ?? {};
    // Measured from outside if possible, because a hung worker reports nothing.
    const residentBytes = residentBytesOf(this.identity.pid) ?? residentMemoryBytes;
    return { residentBytes, requests: requestsTotal };
  }

  /** Makes the worker end its open connections now. If the channel is closed, kills the process. */
  force(): void {
    if (this.process.isConnected()) this.send({ type: 'force' });
    else this.kill('SIGKILL');
  }

  kill(signal: NodeJS.Signals): void {
    this.process.kill(signal);
  }
}

/**
 * Resident memory of a process in bytes. Read from the kernel, so that it works for a stopped or hung
 * process. `undefined` if there is no /proc, or if the process has exited.
 */
function residentBytesOf(pid: number): number | undefined {
  try {
    // The kernel generates this file in memory, so a synchronous read does not wait for a disk.
    const [, kilobytes] =
      /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    return kilobytes === undefined ? undefined : Number(kilobytes) * 1024;
  } catch {
    return undefined;
  }
}
