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
  await eventually('connections that it does not accept', () =>
    listenersOf(pid).some(({ queued }) => queued > 0),
  );
  return asked;
}

/**
 * Kills a worker in the middle of its work. It is stopped first: so what it had accepted is
 * known exactly, as no list of its own could tell it, and connections pile up that it had not.
 *
 * @param ports of the server.
 * @param own where it is reached by a socket of its own.
 * @returns ports of the clients whose connections it had `accepted`, and the requests that were sent
 * while it was stopped: some of them are `queued` at its own socket.
 */
export async function killInTheMiddle(pid: number, ports: readonly number[], own?: string) {
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
