import { once } from 'node:events';
import {
  createServer,
  get,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { HTTPParser } from 'http-parser-js';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { Relay, RELEASE } from '../../src/relay.js';

interface Request {
  readonly method: string;
  readonly url: string;
  readonly body: string;
}

/** An owner of sessions that reads what is relayed to it by a parser that is not Node's. */
class Owner {
  readonly path = join(temporaryDirectory(), 'owner');
  /** Requests, by connection. */
  readonly connections: Request[][] = [];
  readonly errors: unknown[] = [];
  readonly #sockets = new Set<net.Socket>();
  readonly #server = net.createServer((socket) => this.#read(socket));

  get requests(): Request[] {
    return this.connections.flat();
  }

  get open(): number {
    return this.#sockets.size;
  }

  async listen(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(this.path, resolve));
    return this;
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }

  #read(socket: net.Socket): void {
    const requests: Request[] = [];
    this.connections.push(requests);
    this.#sockets.add(socket.on('error', () => {}));
    socket.once('close', () => this.#sockets.delete(socket));
    const parser = new HTTPParser('REQUEST');
    let request = { method: '', url: '', body: '' };
    let closes = false;
    parser[HTTPParser.kOnHeadersComplete] = (({
      method,
      url,
      headers,
    }: {
      method: number;
      url: string;
      headers: string[];
    }) => {
      request = { method: HTTPParser.methods[method]!, url, body: '' };
      closes = headers.some((name, at) => name === 'Connection' && headers[at + 1] === 'close');
    }) as never;
    parser[HTTPParser.kOnBody] = ((chunk: Buffer, from: number, length: number) => {
      request.body += chunk.toString('latin1', from, from + length);
    }) as never;
    parser[HTTPParser.kOnMessageComplete] = () => {
      requests.push(request);
      const body = request.method === 'HEAD' ? '' : request.url;
      socket.write(
        `HTTP/1.1 200 OK\r\nContent-Length: ${request.url.length}\r\n${closes ? 'Connection: close\r\n' : ''}\r\n${body}`,
        'latin1',
      );
      if (closes) socket.end();
    };
    socket.on('data', (chunk) => {
      const outcome: unknown = parser.execute(chunk);
      if (outcome instanceof Error) {
        this.errors.push(outcome);
        socket.destroy();
      }
    });
  }
}

let owner: Owner;
/** A worker that is not the owner. */
let front: Server;
/** All that it has read. */
let handed: IncomingMessage[] = [];

beforeAll(async () => {
  const relay = new Relay();
  // A request that its client never completes is over soon.
  const hurried = { requestTimeout: 300, headersTimeout: 300, connectionsCheckingInterval: 50 };
  front = createServer(hurried, (request, response) => {
    handed.push(request);
    relay.request(owner.path, request, response, () => response.writeHead(502).end());
  });
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
});
afterAll(() => front.close());

async function withOwner(run: () => Promise<void>): Promise<void> {
  owner = await new Owner().listen();
  handed = [];
  try {
    await run();
  } finally {
    owner.close();
  }
}

/** Sends these parts, each in a segment of its own. @returns all that is answered. */
async function send(parts: readonly string[]): Promise<string> {
  const { port } = front.address() as AddressInfo;
  const socket = net.connect({ port, host: '127.0.0.1', noDelay: true });
  let answer = '';
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.on('error', () => {}).on('data', (chunk) => (answer += chunk.toString('latin1')));
  for (const part of parts) {
    await new Promise((resolve) => socket.write(part, 'latin1', resolve));
    await new Promise(setImmediate);
  }
  await closed;
  return answer;
}

const SMUGGLED = 'GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n';
const chunked = (body: string): string => `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
const head = (method: string, url: string, ...headers: string[]): string =>
  [`${method} ${url} HTTP/1.1`, 'Host: a', 'Connection: close', ...headers, '', ''].join('\r\n');
const TE = 'Transfer-Encoding: chunked';

describe('a body', () => {
  it('of a POST is the owner’s', () =>
    withOwner(async () => {
      await send([head('POST', '/own', TE) + chunked(SMUGGLED)]);
      await send([head('POST', '/own', `Content-Length: ${SMUGGLED.length}`) + SMUGGLED]);
      await send([head('GET', '/own')]);
      expect(owner.requests).toEqual([
        { method: 'POST', url: '/own', body: SMUGGLED },
        { method: 'POST', url: '/own', body: SMUGGLED },
        { method: 'GET', url: '/own', body: '' },
      ]);
    }));
});

/** A worker that relays to `path`, and answers with 502 if the owner is gone. */
async function frontOf(path: string, use: (url: string, relay: Relay) => Promise<void>) {
  const relay = new Relay();
  const server = createServer((request, response) => {
    if (request.url === '/tab') request.url = '/a\tb';
    relay.request(path, request, response, () => response.writeHead(502).end());
  });
  server.on('upgrade', (request, socket, first) => {
    relay.upgrade(path, request, socket, first, () => {
      socket.end('HTTP/1.1 502 Bad Gateway\r\nConnection: close\r\n\r\n');
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  try {
    await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, relay);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

const UPGRADE = { Connection: 'Upgrade', Upgrade: 'websocket' };

describe('the worker itself answers', () => {
  it('a path that Node sends to nobody', () =>
    withOwner(() =>
      frontOf(owner.path, async (url, relay) => {
        expect((await fetch(`${url}/tab`)).status).toBe(502);
        expect([...relay.open]).toEqual([]);
        expect(owner.connections).toEqual([]);
      }),
    ));

  it('a request and an upgrade of which there is no owner', () =>
    frontOf(join(temporaryDirectory(), 'none'), async (url, relay) => {
      for (const method of ['GET', 'POST']) {
        expect((await fetch(url, { method })).status).toBe(502);
      }
      const [answer] = (await once(get(url, { headers: UPGRADE }), 'response')) as [
        IncomingMessage,
      ];
      expect(answer.statusCode).toBe(502);
      expect([...relay.open]).toEqual([]);
    }));
});

it('few connections to an owner wait for further requests', () =>
  withOwner(() =>
    frontOf(owner.path, async (url) => {
      for (let i = 0; i < 2; i += 1) await (await fetch(url)).text();
      expect(owner.connections).toHaveLength(1);
      await Promise.all(Array.from({ length: 40 }, async () => (await fetch(url)).text()));
      await vi.waitFor(() => expect(owner.open).toBeLessThanOrEqual(8), 5_000);
      expect(owner.open).toBeGreaterThan(0);
    }),
  ));

it('a drain releases each waiting poll', async () => {
  const path = join(temporaryDirectory(), 'owner');
  const waiting: ServerResponse[] = [];
  const released = vi.fn();
  const server = createServer((request, response) => {
    if (request.headers[RELEASE] === undefined) return waiting.push(response);
    released(request.url);
    return response.end();
  });
  await once(server.listen(path), 'listening');
  const urls = ['/0', '/1', '/2'];
  await frontOf(path, async (url, relay) => {
    const answers = urls.map(async (each) => (await fetch(url + each)).text());
    await vi.waitFor(() => expect(waiting).toHaveLength(urls.length), 5_000);
    for (const release of relay.open) release();
    await vi.waitFor(() => expect(released).toHaveBeenCalledTimes(urls.length), 5_000);
    expect(new Set(released.mock.calls.flat())).toEqual(new Set(urls));
    for (const response of waiting) response.end();
    await Promise.all(answers);
    await vi.waitFor(() => expect([...relay.open]).toEqual([]), 5_000);
  });
  server.closeAllConnections();
  server.close();
});

describe('an upgrade', () => {
  /** An owner whose WebSocket echoes in capitals, and that refuses the upgrade of `/no`. */
  async function withUpgrades(use: (url: URL, relay: Relay) => Promise<void>): Promise<void> {
    const path = join(temporaryDirectory(), 'owner');
    const server = createServer();
    server.on('upgrade', (request, socket, first) => {
      if (request.url === '/no') {
        return socket.end('HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nno');
      }
      socket.write(
        'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
          `Sec-WebSocket-Accept: ${request.headers['sec-websocket-key']}\r\n\r\nfirst `,
      );
      const say = (chunk: Buffer) => socket.write(chunk.toString().toUpperCase());
      say(first);
      socket.on('data', say).on('end', () => socket.end(' last'));
    });
    await once(server.listen(path), 'listening');
    await frontOf(path, (url, relay) => use(new URL(url), relay));
    server.close();
  }

  /** @returns what comes, once the connection has closed. */
  async function exchange({ port }: URL, path: string, then: (socket: net.Socket) => unknown) {
    const socket = net.connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen: true });
    let text = '';
    socket.on('data', (chunk) => (text += chunk.toString()));
    socket.write(
      `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
        'Sec-WebSocket-Key: k\r\n\r\nearly ',
    );
    const closed = once(socket, 'end');
    if (path !== '/no') await vi.waitFor(() => expect(text).toContain('EARLY'), 5_000);
    then(socket);
    await closed;
    socket.destroy();
    return text.split('\r\n\r\n');
  }

  it('is the owner’s, byte for byte, until the client ends it', () =>
    withUpgrades(async (url, relay) => {
      const [top, content] = await exchange(url, '/', (socket) => socket.end('later'));
      expect(top).toMatch(/^HTTP\/1\.1 101 Switching Protocols\r\n/);
      expect(top!.toLowerCase().split('\r\n')).toEqual(
        expect.arrayContaining([
          'connection: upgrade',
          'upgrade: websocket',
          'sec-websocket-accept: k',
        ]),
      );
      expect(top).not.toMatch(/transfer-encoding|content-length|keep-alive/i);
      expect(content).toBe('first EARLY LATER last');
      await vi.waitFor(() => expect([...relay.open]).toEqual([]), 5_000);
    }));

  it('is ended by a drain, with all that the owner has sent', () =>
    withUpgrades(async (url, relay) => {
      const [, content] = await exchange(url, '/', () => {
        expect([...relay.open]).toHaveLength(1);
        for (const leave of relay.open) leave();
      });
      expect(content).toBe('first EARLY  last');
      await vi.waitFor(() => expect([...relay.open]).toEqual([]), 5_000);
    }));

  it('that the owner refuses has its answer', () =>
    withUpgrades(async (url, relay) => {
      const [top, content] = await exchange(url, '/no', () => {});
      expect([top!.split('\r\n')[0], content]).toEqual(['HTTP/1.1 400 Bad Request', 'no']);
      expect([...relay.open]).toEqual([]);
    }));
});

/** The same numbers for the same seed. */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

describe('whatever a client sends', () => {
  const METHODS = ['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE', 'POST', 'POST', 'POST', 'PUT'];
  const BODIES = ['', 'x', SMUGGLED, `0\r\n\r\n${SMUGGLED}`, `\r\n${SMUGGLED}`, 'é'.repeat(99)];

  /** A request as a hostile client may frame it, right or wrong. */
  function frame(below: (limit: number) => number, url: string): string {
    const pick = <T>(...from: T[]): T => from[below(from.length)]!;
    const method = pick(...METHODS);
    const body = pick(...BODIES);
    const length = `Content-Length: ${body.length}`;
    const text = pick(
      () => head(method, url) + body,
      () => head(method, url, length) + body,
      () => head(method, url, 'Content-Length: 0') + body,
      () => head(method, url, `Content-Length: ${body.length + pick(-1, 1)}`) + body,
      () => head(method, url, TE) + chunked(body),
      () =>
        head(method, url, TE, 'Trailer: X') + `${chunked(body).slice(0, -2)}X: ${method}\r\n\r\n`,
      () => head(method, url, 'transfer-encoding:\tchunked') + chunked(body),
      () => head(method, url, 'Transfer-Encoding: xchunked') + chunked(body),
      () => head(method, url, 'Transfer-Encoding: gzip, chunked') + chunked(body),
      () => head(method, url, 'Transfer-Encoding : chunked') + chunked(body),
      () => head(method, url, TE, length) + chunked(body),
      () => head(method, url, length, length) + body,
      () => head(method, url, TE, 'Expect: 100-continue') + chunked(body),
      () => head(method, url, TE) + chunked(body).replace('\r\n', ';ext="\r\n"\r\n'),
      () => head(method, url, TE) + chunked(body).replaceAll('\r\n', '\n'),
      () => head(method, url, `X: a\r\n ${TE}`) + chunked(body),
      () => head(method, url, 'Connection: Transfer-Encoding', TE) + chunked(body),
    )();
    return text + pick('', '', SMUGGLED, '\r\n');
  }

  /** Every byte may be the last of a segment. */
  function split(below: (limit: number) => number, text: string): string[] {
    const ends = Array.from({ length: below(4) }, () => below(text.length)).sort((a, b) => a - b);
    return [0, ...ends].map((from, at) => text.slice(from, ends[at])).filter(Boolean);
  }

  it.each([1, 2])(
    'the owner reads what its worker has read, and nobody else’s answer (seed %d)',
    (seed) =>
      withOwner(async () => {
        const below = random(seed);
        for (let round = 0; round < 150; round += 1) {
          const urls = [0, 1, 2].map((each) => `/${seed}/${round}/${each}`);
          const sent = urls.map((url) => split(below, frame(below, url)));
          const answers = await Promise.all(sent.map(send));
          answers.forEach((answer, index) => {
            const what = JSON.stringify(sent[index]);
            const [top = '', content = ''] = answer.split('\r\n\r\n').slice(-2);
            if (/ 200 /.test(top)) expect([urls[index], ''], what).toContain(content);
            for (const url of urls.filter((each) => each !== urls[index]))
              expect(answer, what).not.toContain(url);
          });
        }
        expect(owner.errors).toEqual([]);
        const read = handed.map(({ method, url }) => `${method} ${url}`);
        const got = owner.requests.map(({ method, url }) => `${method} ${url}`);
        expect(got.filter((each) => !read.includes(each))).toEqual([]);
        expect(got.filter((each) => each.includes('smuggled'))).toEqual([]);
        expect(got.length).toBeGreaterThan(50);
        const withBodies = owner.requests.filter(({ body }) => body !== '');
        expect(withBodies.length).toBeGreaterThan(10);
        expect(withBodies.filter(({ method }) => method !== 'POST')).toEqual([]);
      }),
    60_000,
  );
});
