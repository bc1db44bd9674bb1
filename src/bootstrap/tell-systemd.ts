import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { oneLine, onceEach } from '../contract/errors/errors.js';
import type { EventListeners } from '../contract/log/event-listeners.js';
import type { ClusterEventName } from '../contract/log/events.js';
import { MAX_TIMER_MS } from '../contract/options/checks.js';

/** Node has no unix datagram sockets, so the program systemd-notify sends the messages. */
const run = promisify(execFile);

/** The states of sd_notify(3), by the event that starts them. */
const STATES: { readonly [N in ClusterEventName]?: string } = {
  listening: 'READY=1',
  'reload-started': 'RELOADING=1',
  'reload-ended': 'READY=1',
  stopping: 'STOPPING=1',
  failed: 'STOPPING=1',
};

/** Timeout of systemd-notify, which waits up to 5 s for systemd. */
const SEND_TIMEOUT_MS = 10_000;

/**
 * Reports the state of the cluster to systemd, and notifies systemd's watchdog. Removes systemd's
 * variables, so that child processes cannot send messages for the cluster.
 *
 * @param isWell whether supervision works. Called only after all due timers have run.
 */
export function tellSystemd(
  events: Pick<EventListeners, 'on'>,
  isWell: () => boolean,
  warn: (message: string) => void,
): void {
  const { PATH, NOTIFY_SOCKET } = process.env;
  const watchdogMs = watchdogMsIn(process.env);
  for (const name of ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID']) delete process.env[name];
  const options = { env: { PATH, NOTIFY_SOCKET }, timeout: SEND_TIMEOUT_MS };
  const warnOnce = onceEach(warn);
  let sent: Promise<unknown> = Promise.resolve();
  const notify = (message: string): void => {
    // Sent one at a time, so that systemd gets the last state last.
    sent = sent
      .then(() => run('systemd-notify', [message], options))
      .catch(({ stderr, message: reason }: Error & { readonly stderr?: string }) =>
        warnOnce(`cannot report the cluster's state to systemd: ${oneLine(stderr || reason)}`),
      );
  };
  let state: string | undefined;
  for (const [name, next] of Object.entries(STATES)) {
    events.on(name as ClusterEventName, () => {
      // Ignores reloads before the first worker is ready, and reloads that a shutdown cancels.
      const isReload = name.startsWith('reload');
      if (state === 'STOPPING=1' || (isReload && state === undefined)) return;
      state = next;
      notify(next);
    });
  }
  if (watchdogMs === undefined) return;
  const answer = (): void => {
    if (isWell()) notify('WATCHDOG=1');
    else warn("the primary no longer supervises its workers, so systemd's watchdog gets no ping");
  };
  // Checks after all due timers: they run late if the process was suspended.
  setInterval(() => setImmediate(answer), watchdogMs).unref();
}

/** Half of the watchdog's timeout, in ms. `undefined` if systemd does not watch this process. */
function watchdogMsIn({ WATCHDOG_USEC, WATCHDOG_PID }: NodeJS.ProcessEnv): number | undefined {
  const halfMs = Number(WATCHDOG_USEC) / 2_000;
  if (!(halfMs > 0) || Number(WATCHDOG_PID ?? process.pid) !== process.pid) return undefined;
  return Math.min(halfMs, MAX_TIMER_MS);
}
