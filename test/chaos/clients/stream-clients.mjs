import http from 'node:http';
import { WebSocket } from 'ws';
import { Lost, PATIENCE_MS } from './strict-connection.mjs';

const SERVICE_RESTART = 1012;
/** The code of a close without a code, which this client sends. */
const NO_CODE = 1005;

/** A client of streams closes its connection after so many messages, and connects again. */
const MESSAGES = 200;

/**
 * Sends one message after the other on a WebSocket and wants it back. A close with 1012 is a good
 * end.
 *
 * @throws Lost
 */
export function talk(port, session) {
  return stream(session, ({ opened, brought, ended, lost }) => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/`, { handshakeTimeout: PATIENCE_MS });
    let sent = 0;
    let error;
    const send = () => socket.send(String(++sent));
    socket.on('upgrade', opened);
    socket.on('unexpected-response', (_request, { statusCode }) =>
      lost(new Lost('unexpected', `handshake: ${statusCode}`)),
    );
    socket.on('open', send);
    socket.on('message', (data) => {
      if (!Buffer.from(String(sent)).equals(data)) {
        return lost(new Lost('unexpected', 'another echo'));
      }
      brought();
      void session.pause().then(() => {
        if (socket.readyState !== WebSocket.OPEN) return;
        if (session.stopped || sent >= MESSAGES) socket.close();
        else send();
      });
    });
    socket.on('error', (each) => (error = each));
    socket.on('close', (code) => {
      if (code === SERVICE_RESTART || code === NO_CODE) ended();
      else lost(error ? Lost.of(error) : new Lost('closed', `code ${code}`));
    });
    return () => socket.terminate();
  });
}

/**
 * Reads server-sent events and misses none. An orderly end of the response is a good end.
 *
 * @throws Lost
 */
export function listen(port, session) {
  return stream(session, ({ opened, brought, ended, lost }) => {
    let next = 0;
    const request = http.get({ host: '127.0.0.1', port, path: '/events', agent: false });
    request.on('error', (error) => lost(Lost.of(error)));
    request.on('response', (response) => {
      opened(response);
      const { statusCode } = response;
      if (statusCode !== 200) return lost(new Lost('unexpected', `status ${statusCode}`));
      let received = '';
      response.setEncoding('utf8').on('data', (chunk) => {
        const events = (received + chunk).split('\n\n');
        received = events.pop();
        for (const event of events) {
          const count = /^data: \{"count":(\d+)\}$/m.exec(event)?.[1];
          if (Number(count) !== next++) return lost(new Lost('unexpected', event.slice(0, 100)));
          brought();
        }
        if (session.stopped || next >= MESSAGES) ended();
      });
      response.on('end', ended);
      response.on('error', (error) => lost(Lost.of(error)));
    });
    return () => request.destroy();
  });
}

/** Runs one stream. `begin` starts it, reports what happens to it, and returns what closes it. */
function stream(session, begin) {
  const connection = { since: Date.now(), answered: false, pid: undefined, destroy() {} };
  session.connection = connection;
  return new Promise((resolve, reject) => {
    const end = (settle, value) => {
      clearTimeout(timer);
      settle(value);
      close();
    };
    const late = new Lost('timeout', `nothing for ${PATIENCE_MS} ms`);
    const timer = setTimeout(() => end(reject, late), PATIENCE_MS);
    const close = begin({
      opened({ headers }) {
        connection.pid = Number(headers['x-worker']);
        connection.answered = true;
      },
      brought() {
        timer.refresh();
        connection.since = Date.now();
        session.succeeded();
      },
      ended: () => end(resolve),
      lost: (lost) => end(reject, lost),
    });
  });
}
