// Clients of one kind: client-process.mjs KIND CLIENTS PORT. Tells its parent what became of each
// request, and ends in good order at the message 'stop'.
import { setTimeout as delay } from 'node:timers/promises';
import { converse, WAYS } from './http-client.mjs';
import { Lost } from './lost.mjs';
import { call } from './rpc-client.mjs';
import { listen, talk } from './stream-clients.mjs';

const PAUSE_MS = 80;
/** Before a client that has lost something connects again: else it would do nothing else. */
const AFTER_LOSS_MS = 100;
const TELL_MS = 250;

const ASK = {
  ...Object.fromEntries(
    Object.keys(WAYS).map((way) => [way, (port, session) => converse(way, port, session)]),
  ),
  websocket: talk,
  sse: listen,
  rpc: call,
};

const [kind, clients, port] = process.argv.slice(2);
const counts = { success: 0, ended: 0 };
let stopped = false;

process.on('disconnect', () => process.exit());
// Ctrl+C sends SIGINT to this process too. It is ignored, because the run then asks this process to
// end.
process.on('SIGINT', () => {});
process.on('message', () => (stopped = true));
const telling = setInterval(() => process.send({ counts }), TELL_MS);

await Promise.all(Array.from({ length: Number(clients) }, client));
clearInterval(telling);
process.send({ counts }, () => process.exit());

async function client() {
  while (!stopped) {
    const session = {
      connection: undefined,
      get stopped() {
        return stopped;
      },
      succeeded: () => (counts.success += 1),
      pause: () => delay(PAUSE_MS * (0.5 + Math.random())),
    };
    const began = Date.now();
    try {
      await ASK[kind](Number(port), session);
      counts.ended += 1;
      await session.pause();
    } catch (lost) {
      if (!(lost instanceof Lost)) throw lost;
      const { since = began, answered = false, pid } = session.connection ?? {};
      session.connection?.destroy();
      const { outcome, message: what } = lost;
      process.send({ loss: { client: kind, outcome, what, since, at: Date.now(), answered, pid } });
      await delay(AFTER_LOSS_MS);
    }
  }
}
