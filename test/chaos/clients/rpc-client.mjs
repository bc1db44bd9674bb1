import { Lost } from './lost.mjs';
import { StrictConnection } from './strict-connection.mjs';

/**
 * Calls a TCP microservice of Nest, one call after the other. The protocol knows no last answer: a
 * FIN is a good end between two calls, and before a call that has not begun. Later it loses the call.
 *
 * @throws Lost
 */
export async function call(port, session) {
  const connection = await StrictConnection.open(port);
  session.connection = connection;
  for (let turn = 0; !session.stopped; turn++) {
    if (connection.end?.message === 'FIN') return connection.close();
    const text = JSON.stringify({ pattern: 'echo', data: turn, id: String(turn) });
    connection.write(`${text.length}#${text}`);
    const begun = await connection.take((each) => takePacket(each) ?? finOf(each));
    if (begun === FIN) return connection.close();
    const { response, err } =
      begun.response?.begun === turn ? await connection.take(takePacket) : begun;
    if (response?.echo !== turn) {
      throw new Lost('unexpected', JSON.stringify(err ?? response ?? null).slice(0, 100));
    }
    connection.pid = response.pid;
    connection.answered = true;
    session.succeeded();
    await session.pause();
  }
  connection.close();
}

/** Stands for an orderly end of a connection by the server. */
const FIN = Symbol('FIN');

const finOf = ({ end, received }) => (end?.message === 'FIN' && received === '' ? FIN : undefined);

/** Reads one frame of Nest's TCP transport: the length in characters, `#`, JSON. */
function takePacket(connection) {
  const { received } = connection;
  const start = received.indexOf('#') + 1;
  if (start === 0) return undefined;
  const end = start + Number(received.slice(0, start - 1));
  if (received.length < end) return undefined;
  connection.received = received.slice(end);
  return JSON.parse(received.slice(start, end));
}
