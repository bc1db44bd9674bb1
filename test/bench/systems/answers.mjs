import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ask } from '../load/ask.mjs';

const TIMEOUT_MS = 30_000;
const PAUSE_MS = 20;
const PROGRAM = fileURLToPath(new URL('../apps/ask-hello.mjs', import.meta.url));

/** Resolves once GET /hello is answered with 200; asked from where `enter` leads to. */
export async function answersHello(group, port, enter = []) {
  if (enter.length === 0) return untilHello(port, group.signal);
  const [command, ...args] = [...enter, process.execPath, PROGRAM, String(port)];
  await group.run(command, args);
}

/**
 * Comparisons use these members of a system, once GET /hello is answered.
 *
 * @param more `workerPids`, and what only this system has.
 */
export async function serving(group, port, { enter = [], ...more }) {
  await answersHello(group, port, enter);
  return { port, enter, frontPids: () => [], stop: () => group.stop(), ...more };
}

/** Resolves once GET /hello is answered with 200; asked from this process. */
export async function untilHello(port, signal) {
  await until(port, '/hello', signal, () => true);
}

/** Resolves once so many workers have answered /whoami, each asked on a connection of its own. */
export async function answersFromAll(group, port, workers) {
  const pids = new Set();
  await until(port, '/whoami', group.signal, (body) => {
    pids.add(JSON.parse(body).pid);
    return pids.size >= workers;
  });
}

async function until(port, path, signal, satisfied) {
  const deadline = performance.now() + TIMEOUT_MS;
  for (;;) {
    signal?.throwIfAborted();
    const body = await ask(port, path, TIMEOUT_MS).catch(() => undefined);
    if (body !== undefined && satisfied(body)) return;
    if (performance.now() > deadline) {
      throw new Error(`${path} on port ${port} was not answered as it should within 30 s`);
    }
    // Not a pause for the next to be ready: a refused connection would be asked again at once.
    if (body === undefined) await delay(PAUSE_MS);
  }
}
