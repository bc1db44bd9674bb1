import { readdirSync, readFileSync } from 'node:fs';
import { eventually } from './eventually.js';
import { type Answer, type Outcome, request } from './http-client.js';
import { acceptedBy, listenersOf } from './kernel-sockets.js';

/** Stops a worker; resolves once none of its threads runs. */
export async function freeze(pid: number): Promise<void> {
  process.kill(pid, 'SIGSTOP');
  await eventually(`${pid} stands still`, () => isFrozen(pid));
}

/** Whether every thread of a process is stopped. */
export function isFrozen(pid: number): boolean {
  return readdirSync(`/proc/${pid}/task`).every((thread) =>
    /^\d+ \(.*\) T/s.test(readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8')),
  );
}

/** How many connections wait in the accept queues of the sockets that a process listens on. */
export function queuedAt(pid: number): number {
  return listenersOf(pid).reduce((sum, { queued }) => sum + queued, 0);
}

/** So many that some of them come to each of three sockets, whatever the hash of their ports. */
const ENOUGH = 24;

/**
 * Sends requests to a worker that stands still, over a socket of its own; resolves once some wait
 * in its accept queue.
 *
 * @returns the requests: those that wait, and those that came to the socket of another.
 */
export async function queueAt(pid: number, url: string): Promise<Promise<Answer>[]> {
  const asked = Array.from({ length: ENOUGH }, () => request(url, '/whoami'));
  await eventually('connections that it does not accept', () => queuedAt(pid) > 0);
  return asked;
}

/** The connections that a killed worker leaves behind. */
export interface Estate {
  /** Ports of the clients whose connections it had accepted. */
  readonly accepted: ReadonlySet<number>;
  /** Requests sent while the worker was stopped. Some of them came to its own socket. */
  readonly queued: readonly Promise<Answer>[];
}

/**
 * Kills a worker in the middle of its work. It is stopped first: so what it had accepted is
 * known exactly, as no list of its own could tell it, and connections pile up that it had not.
 *
 * @param ports of the server.
 * @param own where it is reached by a socket of its own.
 */
export async function killInTheMiddle(
  pid: number,
  ports: readonly number[],
  own?: string,
): Promise<Estate> {
  // It runs while this waits: a worker that only ran between looks would miss its heartbeats.
  const accepted = await eventually(
    'a connection that it has accepted',
    async () => {
      if (acceptedBy(pid, ports).size === 0) return new Set<number>();
      await freeze(pid);
      const found = acceptedBy(pid, ports);
      if (found.size === 0) process.kill(pid, 'SIGCONT');
      return found;
    },
    ({ size }) => size > 0,
  );
  const queued = own === undefined ? [] : await queueAt(pid, own);
  process.kill(pid, 'SIGKILL');
  return { accepted, queued };
}

/** How requests ended, each way once. */
export function outcomes(answers: readonly Answer[]): Outcome[] {
  return [...new Set(answers.map(({ outcome }) => outcome))];
}
