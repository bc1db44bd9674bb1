import {
  type BlockReport,
  type DrainReport,
  type ErrorReport,
  type PrimaryMessage,
  seal,
} from '../ipc/index.js';
import type {
  FailureCause,
  RetireCause,
  WorkerIdentity,
  WorkerState,
  WorkerStats,
} from '../snapshot/index.js';
import type { BootOutput } from './boot-output.js';
import { Deadline } from './deadline.js';
import type { ServerHandle } from './listening/bound-socket.js';

/** The states a worker may go to from each. */
const TRANSITIONS: Readonly<Record<WorkerState, readonly WorkerState[]>> = {
  starting: ['ready', 'draining', 'exited'],
  ready: ['draining', 'exited'],
  draining: ['exited'],
  exited: [],
};

/** Messages that may wait to be read: more would only pile up, and whoever asked has a deadline. */
const MAX_UNSENT = 64;

/** What a worker must be told all the same; each is sent a few times in its life at most. */
const DECISIVE: ReadonlySet<PrimaryMessage['type']> = new Set([
  'adopt',
  'release',
  'drain',
  'released',
  'connection',
  'force',
]);

/** A ping that stays without an answer for this long is worth telling, long before it is a hang. */
const UNRESPONSIVE_AFTER_MS = 2_000;

/** Metrics as a worker last serialised them. */
export interface MetricsBody {
  readonly body: string;
  /** Monotonic ms. */
  readonly serializedAt: number;
}

/** A worker was asked to leave. */
export interface Retirement {
  readonly cause: RetireCause;
  /** What its app's shutdown hooks are told. */
  readonly signal: NodeJS.Signals;
  /** Monotonic ms. */
  readonly since: number;
}

/** Of a process that there never was. */
export const NO_PID = 0;

/** What of Node's `Worker` is used: a process that could not be started has less of it. */
export interface WorkerProcess {
  isConnected(): boolean;
  send(message: unknown, handle: never, callback: () => void): unknown;
  kill(signal: NodeJS.Signals): void;
}

/** Whether a worker answers its pings in time. One that is blocked or stopped does not. */
export function isResponsive({ ping }: Pick<WorkerHandle, 'ping'>, now: number): boolean {
  return now - (ping?.sentAt ?? now) < UNRESPONSIVE_AFTER_MS;
}

/** One process, from fork to exit, as the primary knows it. */
export class WorkerHandle {
  readonly startedAt = performance.now();
  readyAt: number | undefined;
  /** Last sign of life, monotonic ms. */
  seenAt: number | undefined;
  /** What it last said of each. */
  stats: Partial<WorkerStats> | undefined;
  metrics: MetricsBody | undefined;
  /** The ping that is not answered yet: one at most. */
  ping: { readonly seq: number; sentAt: number } | undefined;
  /** A `collect` is not answered yet: another would only queue behind it. */
  collecting = false;
  /** The worker's inspector is open: time means nothing. */
  debugged = false;
  /** It was given the listening socket; it needs it once. */
  hasSocket = false;
  /** It can be asked whether its threads can do their work. */
  verifiable = false;
  /** No worker of its generation has shown yet that they can. */
  unproven = false;
  /** What its watchdog says of a block that is going on. */
  block: { readonly report: BlockReport; since: number } | undefined;
  /** Why the primary killed it, or why it ends of its own accord: no cause is to be found from its exit. */
  condemned: { readonly cause: FailureCause; readonly detail: string } | undefined;
  /** It was above the soft memory limit when it became ready. */
  bornTooLarge = false;
  /** Drawn once: moves its recycling limits by their jitter. */
  readonly lot = Math.random();
  /** Killed because it did not leave in time. */
  overdue = false;
  /** It said that it ends by an error of its own. */
  fatal = false;
  /** The last thing it said was wrong. */
  error: ErrorReport | null = null;
  /** It prints an error that keeps it from coming up. */
  printsBootError = false;
  /** What it keeps back until it is ready. */
  bootOutput: BootOutput | undefined;
  /** What it said of its drain. */
  drain: DrainReport | undefined;
  retirement: Retirement | undefined;
  #state: WorkerState = 'starting';
  readonly #deadlines = new Map<string | symbol, Deadline>();
  /** Messages that the kernel has not taken yet. */
  #unsent = 0;

  constructor(
    readonly identity: WorkerIdentity,
    private readonly process: WorkerProcess,
    /** Runs what is due, as an event like any other. */
    private readonly run: (action: () => void) => void = (action) => action(),
  ) {}

  /** Whether there ever was a process: for want of descriptors or memory there may be none. */
  get started(): boolean {
    return this.identity.pid !== NO_PID;
  }

  get state(): WorkerState {
    return this.#state;
  }

  /** Moves to `next`; says whether that was a legal step. */
  enter(next: WorkerState): boolean {
    if (!TRANSITIONS[this.#state].includes(next)) return false;
    this.#state = next;
    if (next === 'exited') for (const deadline of this.#deadlines.values()) deadline.cancel();
    return true;
  }

  /**
   * Runs `action` once the primary has been awake for `ms`, unless the process has ended by then.
   *
   * @param name of what a worker can cause again and again: the last one stands.
   */
  after(ms: number, action: () => void, name: string | symbol = Symbol('after')): void {
    this.#deadlines.get(name)?.cancel();
    const deadline = new Deadline(ms, () => {
      this.#deadlines.delete(name);
      this.run(action);
    });
    this.#deadlines.set(name, deadline);
  }

  get connected(): boolean {
    return this.process.isConnected();
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

  /** It says what it measures: what it leaves out stays as it was. */
  report(stats: Partial<WorkerStats>): void {
    this.stats = { ...this.stats, ...stats };
  }

  kill(signal: NodeJS.Signals): void {
    this.process.kill(signal);
  }

  /** Kills it, for a reason that its exit will not tell. */
  condemn(cause: FailureCause, detail: string): void {
    this.condemned ??= { cause, detail };
    this.kill('SIGKILL');
  }
}
