import http from 'node:http';
import { WebSocket } from 'ws';
import { Lost, PATIENCE_MS } from './strict-connection.mjs';

const GOING_AWAY = 1001;

/** A client of streams comes again now and then of its own accord. */
const MESSAGES = 200;

/**
 * Says one thing after the other on a WebSocket and wants it back. Closed with 1001 is moved: what
 * it says after the server has closed is nobody's.
 *
 * @throws Lost
 */
export function talk(port, session) {
  const connection = newConnection(session);
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/`, { handshakeTimeout: PATIENCE_MS });
    const patience = impatient(() => fail(new Lost('timeout', `no echo for ${PATIENCE_MS} ms`)));
    const fail = (lost) => {
      patience.end();
      reject(lost);
      socket.terminate();
    };
    let said = 0;
    const say = () => socket.send(String(++said));
    socket.on('upgrade', (response) => {
      connection.pid = Number(response.headers['x-worker']);
      connection.answered = true;
    });
    socket.on('unexpected-response', (_request, { statusCode }) =>
      fail(new Lost('unexpected', `handshake: ${statusCode}`)),
    );
    socket.on('open', say);
    socket.on('message', (data) => {
      patience.renew();
      connection.since = Date.now();
      if (!Buffer.from(String(said)).equals(data)) {
        return fail(new Lost('unexpected', 'another echo'));
      }
      session.succeeded();
      void session.pause().then(() => {
        if (socket.readyState !== WebSocket.OPEN) return;
        if (session.stopped || said >= MESSAGES) socket.close();
        else say();
      });
    });
    let error;
    socket.on('error', (each) => (error = each));
    socket.on('close', (code) => {
      patience.end();
      // 1005: this client had closed it, without a code.
      if (code === GOING_AWAY || code === 1005) resolve();
      else reject(error ? Lost.of(error) : new Lost('closed', `code ${code}`));
    });
  });
}

/**
 * Reads server-sent events and misses none. An end of the stream as HTTP knows it is moved.
 *
 * @throws Lost
 */
export function listen(port, session) {
  const connection = newConnection(session);
  return new Promise((resolve, reject) => {
    let next = 0;
    const request = http.get({ host: '127.0.0.1', port, path: '/events', agent: false });
    const done = (settle, value) => {
      patience.end();
      settle(value);
      request.destroy();
    };
    const fail = (lost) => done(reject, lost);
    const patience = impatient(() => fail(new Lost('timeout', `no event for ${PATIENCE_MS} ms`)));
    request.on('error', (error) => fail(Lost.of(error)));
    request.on('response', (response) => {
      connection.pid = Number(response.headers['x-worker']);
      connection.answered = true;
      if (response.statusCode !== 200) {
        return fail(new Lost('unexpected', `status ${response.statusCode}`));
      }
      let received = '';
      response.setEncoding('utf8').on('data', (chunk) => {
        patience.renew();
        connection.since = Date.now();
        const events = (received + chunk).split('\n\n');
        received = events.pop();
        for (const event of events) {
          const count = /^data: \{"count":(\d+)\}$/m.exec(event)?.[1];
          if (Number(count) !== next++) return fail(new Lost('unexpected', event.slice(0, 100)));
          session.succeeded();
        }
        if (session.stopped || next >= MESSAGES) done(resolve);
      });
      response.on('end', () => done(resolve));
      response.on('error', (error) => fail(Lost.of(error)));
    });
  });
}

function newConnection(session) {
  session.connection = { since: Date.now(), answered: false, pid: undefined, destroy() {} };
  return session.connection;
}

/** Calls `late` where neither is called in time. */
function impatient(late) {
  const timer = setTimeout(() => late(), PATIENCE_MS);
  return { renew: () => timer.refresh(), end: () => clearTimeout(timer) };
}
