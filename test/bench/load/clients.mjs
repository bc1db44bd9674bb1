import http from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

const CLIENTS_OF_A_KIND = 6;
const BODY = JSON.stringify({ text: 'x'.repeat(16 * 1024) });
const TIMEOUT_MS = 10_000;
const REFUSED_PAUSE_MS = 10;

/**
 * Eighteen clients without pause, none of which ever asks again what was lost:
 * a third on kept connections, a third on new ones, a third posts 16 KB.
 */
export class Clients {
  requests = 0;
  lost = 0;
  /** Requests begun and not ended. */
  inFlight = 0;
  /** How many were lost in which way: 'GET ECONNRESET', 'POST status 502', … */
  losses = {};
  #stopped = false;
  #running;

  constructor(port) {
    const kinds = [
      () => ({ path: '/whoami', agent: keepAlive() }),
      () => ({ path: '/whoami', agent: false }),
      () => ({ path: '/echo', method: 'POST', agent: keepAlive(), body: BODY }),
    ];
    this.#running = kinds.flatMap((kind) =>
      Array.from({ length: CLIENTS_OF_A_KIND }, () => this.#run({ port, ...kind() })),
    );
  }

  async #run(options) {
    while (!this.#stopped) {
      this.inFlight += 1;
      const outcome = await send(options);
      this.inFlight -= 1;
      this.requests += 1;
      if (outcome.error !== undefined) {
        this.lost += 1;
        this.losses[outcome.error] = (this.losses[outcome.error] ?? 0) + 1;
        // If nothing listens, each attempt is refused at once. The pause keeps the count low.
        if (outcome.error.endsWith('ECONNREFUSED')) await pause(REFUSED_PAUSE_MS);
      }
    }
  }

  async stop() {
    this.#stopped = true;
    await Promise.all(this.#running);
  }
}

function keepAlive() {
  return new http.Agent({ keepAlive: true, maxSockets: 1 });
}

function send({ port, path, method = 'GET', agent, body }) {
  return new Promise((resolve) => {
    const headers = body ? { 'content-type': 'application/json' } : {};
    const request = http.request({ host: '127.0.0.1', port, path, method, agent, headers });
    request.setTimeout(TIMEOUT_MS, () => request.destroy(new Error('timeout')));
    request.on('error', (error) => resolve({ error: `${method} ${error.code ?? error.message}` }));
    request.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => (text += chunk));
      response.on('error', (error) => resolve({ error: `${method} ${error.code}` }));
      response.on('end', () => {
        const well = response.statusCode < 300 && (body === undefined || text === body);
        resolve(well ? {} : { error: `${method} status ${response.statusCode}` });
      });
    });
    request.end(body);
  });
}
