import { Lost } from './lost.mjs';
import { StrictConnection } from './strict-connection.mjs';

const get = (path, head = '') => `GET ${path} HTTP/1.1\r\nHost: chaos\r\n${head}\r\n`;

const post = (path, body) =>
  `POST ${path} HTTP/1.1\r\nHost: chaos\r\nContent-Type: application/json\r\n` +
  `Content-Length: ${body.length}\r\n\r\n${body}`;

const FILLING = 'x'.repeat(16 * 1024);
const FIBONACCI = [20, 6765];

/** Ways to ask: the text of a request, and what its answer has to be. */
export const WAYS = {
  'keep-alive': () => ({ text: get('/whoami'), status: 200, body: /^\{"pid":\d+\}$/ }),
  connect: () => ({
    text: get('/whoami', 'Connection: close\r\n'),
    status: 200,
    body: /^\{"pid":\d+\}$/,
  }),
  post: (turn) => {
    const body = JSON.stringify({ turn, filling: FILLING });
    return { text: post('/echo', body), status: 201, body };
  },
  offload: () => ({
    text: get(`/tasks/fibonacci/${FIBONACCI[0]}`),
    status: 200,
    body: JSON.stringify({ n: FIBONACCI[0], value: FIBONACCI[1] }),
  }),
};

/**
 * Asks on one connection until its server, or this client, ends it well.
 *
 * @throws Lost
 */
export async function converse(way, port, session) {
  const connection = await StrictConnection.open(port);
  session.connection = connection;
  for (let turn = 0; ; turn++) {
    const { text, status, body } = WAYS[way](turn);
    connection.write(text);
    const answer = await connection.take(takeAnswer);
    connection.pid = answer.pid ?? connection.pid;
    connection.answered = true;
    const good = typeof body === 'string' ? answer.body === body : body.test(answer.body);
    if (answer.status !== status || !good) {
      throw new Lost('unexpected', `${answer.status} ${answer.body.slice(0, 100)}`);
    }
    session.succeeded();
    if (answer.last) {
      await connection.leave();
      return;
    }
    if (session.stopped) {
      connection.close();
      return;
    }
    await session.pause();
  }
}

/** The next answer with a `Content-Length`, once it is whole. */
function takeAnswer(connection) {
  const { received } = connection;
  const headLength = received.indexOf('\r\n\r\n') + 4;
  if (headLength < 4) return undefined;
  const head = received.slice(0, headLength);
  const length = Number(/^content-length: (\d+)\r$/im.exec(head)?.[1] ?? 0);
  if (received.length < headLength + length) return undefined;
  connection.received = received.slice(headLength + length);
  const pid = /^x-worker: (\d+)\r$/im.exec(head)?.[1];
  return {
    status: Number(head.slice('HTTP/1.1 '.length, 'HTTP/1.1 200'.length)),
    body: received.slice(headLength, headLength + length),
    pid: pid && Number(pid),
    last: /^connection: close\r$/im.test(head),
  };
}
