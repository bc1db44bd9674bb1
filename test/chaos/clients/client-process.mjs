// Clients of one kind: client-process.mjs KIND CLIENTS PORT. Reports to its parent what became of each
// request, and ends in good order at the message 'stop'.
import { setTimeout as delay } from 'node:timers/promises';
import { listen, talk } from './stream-clients.mjs';
import { Lost, StrictConnection } from './strict-connection.mjs';

const PAUSE_MS = 80;
/** Before a client that has lost something connects again: else it would do nothing else. */
const AFTER_LOSS_MS = 100;
const REPORT_MS = 250;

const get = (path, head = '') => `GET ${path} HTTP/1.1\r\nHost: chaos\r\n${head}\r\n`;

const post = (path, body) =>
  `POST ${path} HTTP/1.1\r\nHost: chaos\r\nContent-Type: application/json\r\n` +
  `Content-Length: ${body.length}\r\n\r\n${body}`;

const FILLING = 'x'.repeat(16 * 1024);
const WHOAMI = /^\{"pid":\d+\}$/;

/** Ways to ask: the text of a request, and what its answer has to be. */
const WAYS = {
  'keep-alive': () => ({ text: get('/whoami'), status: 200, body: WHOAMI }),
  connect: () => ({ text: get('/whoami', 'Connection: close\r\n'), status: 200, body: WHOAMI }),
  post: (turn) => {
    const body = JSON.stringify({ turn, filling: FILLING });
    return { text: post('/echo', body), status: 201, body };
  },
  offload: () => ({ text: get('/tasks/fibonacci/20'), status: 200, body: '{"n":20,"value":6765}' }),
};

const [kind, clients, port] = process.argv.slice(2);
const ask = { websocket: talk, sse: listen }[kind] ?? converse;
const counts = { success: 0, ended: 0 };
let stopped = false;

process.on('disconnect', () => process.exit());
// Ctrl+C sends SIGINT to this process too. It is ignored, because the run then asks this process to
// end.
process.on('SIGINT', () => {});
process.on('message', () => (stopped = true));
const reporting = setInterval(() => process.send({ counts }), REPORT_MS);

await Promise.all(Array.from({ length: Number(clients) }, client));
clearInterval(reporting);
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
      await ask(Number(port), session);
      counts.ended += 1;
      await session.pause();
    } catch (lost) {
      if (!(lost instanceof Lost)) throw lost;
      const { since = began, answered = false, pid, asked } = session.connection ?? {};
      session.connection?.destroy();
      const { outcome, message: what } = lost;
      const loss = { client: kind, outcome, what, since, at: Date.now(), answered, pid, asked };
      process.send({ loss });
      await delay(AFTER_LOSS_MS);
    }
  }
}

/**
 * Asks on one connection until its server, or this client, ends it well.
 *
 * @throws Lost
 */
async function converse(to, session) {
  const connection = await StrictConnection.open(to);
  session.connection = connection;
  for (let turn = 0; ; turn++) {
    const { text, status, body } = WAYS[kind](turn);
    connection.asked = Date.now();
    connection.write(text);
    const answer = await connection.answer();
    const good = typeof body === 'string' ? answer.body === body : body.test(answer.body);
    if (answer.status !== status || !good) {
      throw new Lost('unexpected', `${answer.status} ${answer.body.slice(0, 200)}`);
    }
    session.succeeded();
    if (answer.last) return connection.leave();
    if (session.stopped) return connection.close();
    await session.pause();
  }
}
