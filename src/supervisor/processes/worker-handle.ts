import type { EmitEvent } from '../../contract/events/index.js';
import { type PrimaryMessage, seal, type WatchdogRequest } from '../../contract/ipc/index.js';
import type { WorkerIdentity, WorkerState, WorkerStats } from '../../contract/snapshot/index.js';
import type { Worker } from '../decide/cluster-state.js';
import type { ServerHandle } from '../listening/bound-socket.js';

/** Messages that may wait to be read: more would only pile up, and the requester has a deadline. */
const MAX_UNSENT = 64;

/** Events among them: the rest is left for what is asked and answered. */
const MAX_UNSENT_EVENTS = 32;

/** Messages that a worker must get in any case. Each is sent a few times in its life at most. */
export const DECISIVE: ReadonlySet<PrimaryMessage['type']> = new Set([
  'adopt',
  'release',
  'drain',
  'released',
  'quarantine',
  'force',
]);

/** A ping that stays without an answer for this long is worth telling, long before it is a hang. */
const UNRESPONSIVE_AFTER_MS = 2_000;

/** The pid of a process that never started. */
export const NO_PID = 0;

/** The used part of Node's `Worker`. A process that could not be started has less of it. */
export interface WorkerProcess {
  isConnected(): boolean;
  send(message: unknown, handle: never, callback: () => void): unknown;
  kill(signal: NodeJS.Signals): void;
  /** Missing where it has no watchdog. */
  readonly askWatchdog?: ((line: string) => void) | undefined;
}

/** Whether a worker answers its pings in time. One that is blocked or stopped does not. */
export function isResponsive({ known }: Pick<WorkerHandle, 'known'>, now: number): boolean {
  return now - (known?.ping?.sentAt ?? now) < UNRESPONSIVE_AFTER_MS;
}

const NOTHING: ReadonlySet<string> = new Set();

/** The process of a worker: the channel to it, and its reports. The core decides its fate. */
export class WorkerHandle {
  /** Looks up what the core knows of it. */
  look: () => Worker | undefined = () => undefined;
  /** Last sign of life, monotonic ms. */
  seenAt: number | undefined;
  /** It has sent a message of this version over its channel. */
  isUnderstood = false;
  /** Its last value of each of them. */
  stats: Partial<WorkerStats> | undefined;
  /** It was given the listening socket; it needs it once. */
  hasSocket = false;
  /** Names by which it takes connections that others pass on. */
  readonly takes = new Set<string>();
  /** Events of the cluster that it wants to be told of. */
  wants: ReadonlySet<string> = NOTHING;
  /** Such events that it was not told of. */
  #missed = 0;
  /** Messages that the kernel has not taken yet. */
  #unsent = 0;

  constructor(
    readonly identity: WorkerIdentity,
    private readonly process: WorkerProcess,
  ) {}

  /** As the core knows it; `undefined` once it has exited. */
  get known(): Worker | undefined {
    return this.look();
  }

  get state(): WorkerState {
    return this.known?.state ?? 'exited';
  }

  /** Whether a message would be read soon: the channel is open and nothing queues on it. */
  get reachable(): boolean {
    return this.process.isConnected() && this.#unsent === 0;
  }

  /** It does not read what it is sent. */
  get congested(): boolean {
    return this.#unsent >= MAX_UNSENT;
  }

  /**
   * Sends where a channel is open. A closed one is a normal outcome: `exit` tells.
   *
   * @param settled is called once the message has been sent, or never will be.
   */
  send(message: PrimaryMessage, handle?: ServerHandle, settled?: () => void): void {
    if (!this.process.isConnected()) return settled?.();
    if (this.congested && !DECISIVE.has(message.type)) return settled?.();
    this.#unsent += 1;
    try {
      // Node's types leave out the raw handles that it does take.
      this.process.send(seal(message), handle as never, () => {
        this.#unsent -= 1;
        settled?.();
      });
    } catch (error) {
      this.#unsent -= 1; // Node has not taken it, and says so by this alone
      throw error;
    }
  }

  /** Tells it of an event that it wants. While it does not read, it misses them: none are kept for it. */
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

  /** Asks its watchdog, which answers also while the event loop is blocked. @returns whether it has one. */
  askWatchdog(request: WatchdogRequest): boolean {
    this.process.askWatchdog?.(`${JSON.stringify(request)}\n`);
    return this.process.askWatchdog !== undefined;
  }

  /** It says what it measures: what it leaves out stays as it was. */
  report(stats: Partial<WorkerStats>): void {
    this.stats = { ...this.stats, ...stats };
  }

  /** Ends its open connections now; where it cannot be told, the process. */
  force(): void {
    if (this.process.isConnected()) this.send({ type: 'force' });
    else this.kill('SIGKILL');
  }

  kill(signal: NodeJS.Signals): void {
    this.process.kill(signal);
  }
}
