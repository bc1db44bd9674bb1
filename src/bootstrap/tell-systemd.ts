import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { oneLine } from '../contract/errors/index.js';
import type { EventListeners } from '../contract/log/event-listeners.js';
import type { ClusterEventName } from '../contract/log/events.js';
import { describeEvent } from '../contract/log/lines.js';
import { MAX_TIMER_MS } from '../contract/options/schema.js';

interface NotifyingProcess {
  /** How many workers are ready, of how many. Missing without a primary. */
  readonly workers?: () => { readonly ready: number; readonly desired: number };
  /** Whether the process does its regular work. Called when all timers that were due have run. */
  readonly isWell: () => boolean;
  readonly warn: (message: string) => void;
}

/** Sends variables to systemd, as in `READY=1`. */
type SendVariables = (assignments: readonly string[]) => Promise<unknown>;

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

/**
 * Tells systemd the state of the cluster, and answers systemd's watchdog. Removes systemd's
 * variables, because no child may speak for the cluster. Nothing waits for the messages. Each
 * message has the whole state, so the next message makes up for a lost one.
 */
export function tellSystemd(
  events: Pick<EventListeners, 'on'>,
  { workers, isWell, warn }: NotifyingProcess,
  env: NodeJS.ProcessEnv = process.env,
  send: SendVariables = sender(env),
): void {
  const watchdogMs = watchdogMsIn(env);
  for (const name of ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID']) delete env[name];
  let state: string | undefined;
  let shown: string | undefined;
  let isAlive = false;
  const message = (): string[] => {
    const { ready, desired } = workers?.() ?? {};
    const count = desired === undefined ? '' : `${ready}/${desired} workers ready; `;
    const status = shown && `STATUS=${count}${shown}`.slice(0, MAX_STATUS_LENGTH);
    const watchdog = isAlive ? 'WATCHDOG=1' : undefined;
    isAlive = false;
    return [state, status, watchdog].filter((each) => each !== undefined);
  };
  const notify = oneAtATime(() => send(message()), warn);
  for (const name of [...SHOWN, ...COUNTED]) {
    events.on(name, (event) => {
      // A reload that a stop cancels, or one before the first worker is ready, changes no state.
      const isOver = state === 'STOPPING=1';
      if (name.startsWith('reload') && (state === undefined || isOver)) return;
      if (SHOWN.includes(name)) shown = oneLine(describeEvent(name, event)!.text);
      if (!isOver) state = STATES[name] ?? state;
      notify();
    });
  }
  if (watchdogMs === undefined) return;
  const answer = (): void => {
    isAlive = isWell();
    if (isAlive) notify();
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

/** Calls `send` once at a time. Calls during a run cause one more run. Warns of the first failure. */
function oneAtATime(send: () => Promise<unknown>, warn: (message: string) => void): () => void {
  let isSending = false;
  let isDue = false;
  let hasFailed = false;
  const sendAll = async (): Promise<void> => {
    for (isSending = true; isDue;) {
      isDue = false;
      await send().catch(({ stderr, message }: Error & { readonly stderr?: string }) => {
        if (!hasFailed)
          warn(`systemd does not get the state of the cluster: ${oneLine(stderr || message)}`);
        hasFailed = true;
      });
    }
    isSending = false;
  };
  return () => {
    isDue = true;
    if (!isSending) void sendAll();
  };
}
