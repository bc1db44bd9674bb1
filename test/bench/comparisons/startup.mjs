import net from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { compare } from './compare.mjs';
import { EVERYBODY } from './everybody.mjs';

export const startup = {
  name: 'startup',
  title: 'Time to ready',
  about:
    'From the start command to the first connection that is accepted, and until every worker serves. pm2, Watt and nginx include their own command; a namespace cannot be asked from outside, so iptables has the second figure alone.',
  rounds: 5,
  adapters: ['express'],
  parameters: {},
  metric: 'allReadyMs',
  rows(run) {
    return compare({
      run,
      contestants: run.pick(EVERYBODY).map((system) => ({ system: timed(system) })),
      measure: ({ times }) => times,
    });
  },
};

/** The same system, which says what its start took. */
function timed(system) {
  return {
    ...system,
    async start(options) {
      const startedAt = performance.now();
      const over = new AbortController();
      const first = accepted(options.port, over.signal).then(() => performance.now() - startedAt);
      first.catch(() => {});
      try {
        const running = await system.start(options);
        const allReadyMs = performance.now() - startedAt;
        const readyMs = running.enter.length === 0 ? await first : undefined;
        return { ...running, times: { readyMs, allReadyMs } };
      } finally {
        over.abort();
      }
    },
  };
}

const EVERY_MS = 5;

async function accepted(port, signal) {
  while (!(await connects(port))) await delay(EVERY_MS, undefined, { signal });
}

function connects(port) {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
