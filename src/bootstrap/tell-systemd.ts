import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { oneLine } from '../contract/errors/index.js';
import {
  type ClusterEventName,
  describeEvent,
  type EventListeners,
} from '../contract/events/index.js';
import { MAX_TIMER_MS } from '../contract/options/schema.js';

export interface NotifyingProcess {
  /** How many workers are ready, of how many. Missing without a primary. */
  readonly workers?: () => { readonly ready: number; readonly desired: number };
  /** Whether the process does its regular work. Called when all timers that were due have run. */
  readonly isWell: () => boolean;
  readonly warn: (message: string) => void;
}

/** Assignments of variables of sd_notify(3), at most one of each kind. */
interface Message {
  readonly state?: string;
  readonly status?: string;
  readonly watchdog?: string;
}

/** Sends variables to systemd, as in `READY=1`. */
export type SendVariables = (assignments: readonly string[]) => Promise<unknown>;

/** The states of sd_notify(3), by the event with which they begin. */
const STATES: { readonly [N in ClusterEventName]?: string } = {
  listening: 'READY=1',
  'reload-started': 'RELOADING=1',
  'reload-ended': 'READY=1',
  stopping: 'STOPPING=1',
  failed: 'STOPPING=1',
};

/** The events whose text is shown by `systemctl status`. */
const SHOWN = ['starting', 'reload-reverting', ...Object.keys(STATES)] as ClusterEventName[];

/** Further events that change the number of workers. */
const COUNTED = ['worker-ready', 'worker-exit', 'scaling'] as const;

/** systemd drops a message of more than 4,096 bytes, and a character has at most 3 for each unit of its length. */
const MAX_STATUS_LENGTH = 1_000;

/** The maximum time of one systemd-notify. It waits up to 5 s for systemd to take the message. */
const SEND_TIMEOUT_MS = 10_000;

const RETRY_MS = 5_000;

/**
 * Tells systemd the state of the cluster, and answers systemd's watchdog. Removes systemd's
 * variables, because no child may speak for the cluster. Nothing waits for the messages.
 */
export function tellSystemd(
  events: Pick<EventListeners, 'on'>,
  { workers, isWell, warn }: NotifyingProcess,
  env: NodeJS.ProcessEnv = process.env,
  send: SendVariables = sender(env),
): void {
  const watchdogMs = watchdogMsIn(env);
  for (const name of ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID']) delete env[name];
  const messages = new Messages(send, warn);
  const said = new Set<ClusterEventName>();
  let shown = '';
  for (const name of [...SHOWN, ...COUNTED]) {
    events.on(name, (event) => {
      // A reload that a stop cancels, or one before the first worker is ready, changes no state.
      const isOver = said.has('stopping') || said.has('failed');
      if (name.startsWith('reload') && (isOver || !said.has('listening'))) return;
      said.add(name);
      if (SHOWN.includes(name)) shown = oneLine(describeEvent(name, event).text);
      const { ready, desired } = workers?.() ?? {};
      const count = desired === undefined ? '' : `${ready}/${desired} workers ready; `;
      const status = `STATUS=${count}${shown}`.slice(0, MAX_STATUS_LENGTH);
      const state = STATES[name];
      messages.tell({ ...(state && { state }), status });
    });
  }
  if (watchdogMs === undefined) return;
  const answer = (): void => {
    if (isWell()) messages.tell({ watchdog: 'WATCHDOG=1' });
    else warn('systemd gets no answer for its watchdog, because the supervisor does not work');
  };
  // Checked after all timers that are due, because the process may have been stopped for a while.
  setInterval(() => setImmediate(answer), watchdogMs).unref();
}

/** Half of the time in which systemd wants an answer, in ms; `undefined` if systemd does not wait. */
function watchdogMsIn({ WATCHDOG_USEC, WATCHDOG_PID }: NodeJS.ProcessEnv): number | undefined {
  const halfMs = Number(WATCHDOG_USEC) / 2_000;
  if (!(halfMs > 0) || Number(WATCHDOG_PID ?? process.pid) !== process.pid) return undefined;
  return Math.min(halfMs, MAX_TIMER_MS);
}

/** Node has no datagram sockets of the family unix, so a program of systemd sends the messages. */
function sender({ PATH, NOTIFY_SOCKET }: NodeJS.ProcessEnv): SendVariables {
  const run = promisify(execFile);
  const options = { env: { PATH, NOTIFY_SOCKET }, timeout: SEND_TIMEOUT_MS };
  return (assignments) => run('systemd-notify', assignments, options);
}

/** Messages to systemd, sent one at a time. Only the latest message of each kind is kept. */
class Messages {
  #waiting: Message = {};
  #sending = false;
  #warned = false;

  constructor(
    private readonly send: SendVariables,
    private readonly warn: (message: string) => void,
  ) {}

  tell(message: Message): void {
    this.#waiting = { ...this.#waiting, ...message };
    if (!this.#sending) void this.#sendAll();
  }

  async #sendAll(): Promise<void> {
    this.#sending = true;
    for (;;) {
      const message = this.#waiting;
      this.#waiting = {};
      const assignments: string[] = Object.values(message);
      if (assignments.length === 0) break;
      try {
        await this.send(assignments);
      } catch (error) {
        this.#waiting = { ...message, ...this.#waiting };
        this.#complain(error as Error & { readonly stderr?: string });
        await new Promise((resolve) => void setTimeout(resolve, RETRY_MS).unref());
      }
    }
    this.#sending = false;
  }

  #complain({ stderr, message }: Error & { readonly stderr?: string }): void {
    if (this.#warned) return;
    this.#warned = true;
    const why = oneLine(stderr || message);
    this.warn(
      `systemd is not told the state of the cluster: ${why}; it is tried again every ${RETRY_MS / 1_000} s`,
    );
  }
}
