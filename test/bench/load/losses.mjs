import { fileURLToPath } from 'node:url';
import { ProcessGroup } from '../process-group.mjs';

const SCRIPT = fileURLToPath(new URL('clients-process.mjs', import.meta.url));

/**
 * Has clients ask without pause while events happen, one after the other, and counts what they
 * lose by each.
 *
 * @param cause makes one event happen; resolves when the next may.
 */
export function lossesOf(target, times, cause) {
  return ProcessGroup.begin(async (group) => {
    const [program, ...args] = [
      ...target.enter,
      process.execPath,
      SCRIPT,
      JSON.stringify({ port: target.port }),
    ];
    const clients = group.spawn(program, args);
    let last;
    clients.onLine((line) => (last = line));
    await said(clients, 'running');
    const took = [];
    for (let k = 0; k < times; k += 1) {
      const marked = said(clients, 'marked');
      clients.kill('SIGUSR2');
      await marked;
      const startedAt = performance.now();
      await cause(k);
      took.push(performance.now() - startedAt);
    }
    clients.kill('SIGTERM');
    await clients.ended;
    await group.stop();
    const { requests, lost, losses, events } = JSON.parse(last);
    return {
      took,
      metrics: {
        asked: requests,
        lost,
        lostMost: Math.max(...events.map((event) => event.lost)),
        inFlight: Math.max(...events.map((event) => event.inFlight)),
        errors: losses,
      },
    };
  });
}

function said(clients, word) {
  return clients.line((line) => (line === word ? true : undefined));
}
