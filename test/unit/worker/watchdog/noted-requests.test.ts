import { once } from 'node:events';
import { createServer, get, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished, vi } from 'vitest';
import { NotedRequests } from '../../../../src/worker/watchdog/noted-requests.js';
import { RequestTracker } from '../../../../src/worker/http/request-tracker.js';

const GET = { method: 'GET', url: '/cats?name=x' };
const POST = { method: 'POST', url: '/cats' };

/** As another thread sees it. */
function read(note: NotedRequests): string[] {
  const { lengths, text } = structuredClone({ lengths: note.lengths, text: note.text });
  const places = Array.from(lengths, (length, place) => {
    const begin = (place * text.length) / lengths.length;
    return Buffer.from(text).toString('latin1', begin, begin + length);
  });
  return places.filter((line) => line !== '');
}

it('names the requests in flight, and since when', () => {
  const note = new NotedRequests();
  expect(read(note)).toEqual([]);
  note.began(POST, 1);
  note.began(GET, 2);
  expect(read(note)).toEqual(['POST /cats', 'GET /cats?name=x']);
  expect([...note.startedAt].slice(0, 2)).toEqual([1, 2].map((ms) => performance.timeOrigin + ms));
});

it.each([
  ['an earlier', POST, ['GET /cats?name=x']],
  ['a later', GET, ['POST /cats']],
])('goes on to name a request when %s one is over', (_which, over, rest) => {
  const note = new NotedRequests();
  note.began(POST, 1);
  note.began(GET, 2);
  note.ended(over);
  expect(read(note)).toEqual(rest);
  note.ended(over === GET ? POST : GET);
  expect(read(note)).toEqual([]);
});

it('names some of a great many, and always the one that began last', () => {
  const note = new NotedRequests();
  const many = Array.from({ length: 1_000 }, (_, i) => ({ method: 'GET', url: `/${i}` }));
  for (const [i, request] of many.entries()) {
    note.began(request, i);
    expect(read(note)).toContain(`GET /${i}`);
  }
  expect(read(note)).toHaveLength(10);
  for (const request of many) note.ended(request);
  expect(read(note)).toEqual([]);
});

it('names nothing of a connection that is gone, also if requests were pipelined on it', () => {
  const note = new NotedRequests();
  for (const url of ['/1', '/2', '/3']) note.began({ ...GET, url, socket: note }, 1);
  note.began(POST, 2);
  note.left(note);
  expect(read(note)).toEqual(['POST /cats']);
});

it('cuts what a client makes too long', () => {
  const note = new NotedRequests();
  note.began({ method: 'M'.repeat(1_000), url: `/${'x'.repeat(10_000)}` }, 1);
  expect(read(note)).toEqual([`${'M'.repeat(32)} /${'x'.repeat(199)}`]);
});

it('takes a request without a URL, as CONNECT over HTTP/2 is', () => {
  const note = new NotedRequests();
  note.began({ method: 'CONNECT', url: undefined }, 1);
  expect(read(note)).toEqual(['CONNECT ']);
});

it('has what a server is at: no request that was answered, and none whose client has left', async () => {
  const note = new NotedRequests();
  const tracker = new RequestTracker();
  tracker.reports.noted = note;
  const server = createServer();
  tracker.follow(server);
  onTestFinished(() => {
    tracker.unfollow();
    server.closeAllConnections();
    server.close();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const ask = async (path: string) => {
    const request = get({ host: '127.0.0.1', port, path });
    request.on('error', () => {});
    const [, response] = (await once(server, 'request')) as [unknown, ServerResponse];
    expect(read(note)).toEqual([`GET ${path}`]);
    return { request, response };
  };

  const answered = await ask('/answered');
  answered.response.end();
  await vi.waitUntil(() => read(note).length === 0);
  const left = await ask('/left');
  left.request.destroy();
  await vi.waitUntil(() => read(note).length === 0);
});
