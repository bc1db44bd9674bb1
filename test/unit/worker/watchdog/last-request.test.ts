import { once } from 'node:events';
import { createServer, get, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished, vi } from 'vitest';
import { LastRequest } from '../../../../src/worker/watchdog/last-request.js';
import { RequestTracker } from '../../../../src/worker/http/request-tracker.js';

const GET = { method: 'GET', url: '/cats?name=x' };
const POST = { method: 'POST', url: '/cats' };

/** As another thread sees it. */
function read(note: LastRequest): string {
  const { numbers, text } = structuredClone({ numbers: note.numbers, text: note.text });
  return Buffer.from(text).toString('latin1', 0, numbers[0]);
}

it('names the request that began last, and since when', () => {
  const note = new LastRequest();
  expect(read(note)).toBe('');
  note.began(POST, 1);
  note.began(GET, 2);
  expect(read(note)).toBe('GET /cats?name=x');
  expect(note.numbers[1]).toBe(performance.timeOrigin + 2);
});

it('names no request that is over, and keeps it when an earlier one ends', () => {
  const note = new LastRequest();
  note.began(POST, 1);
  note.began(GET, 2);
  note.ended(POST);
  expect(read(note)).toBe('GET /cats?name=x');
  note.ended(GET);
  expect(read(note)).toBe('');
});

it('cuts what a client makes too long', () => {
  const note = new LastRequest();
  note.began({ method: 'M'.repeat(1_000), url: `/${'x'.repeat(10_000)}` }, 1);
  expect(read(note)).toBe(`${'M'.repeat(32)} /${'x'.repeat(199)}`);
});

it('takes a request without a URL, as CONNECT over HTTP/2 is', () => {
  const note = new LastRequest();
  note.began({ method: 'CONNECT', url: undefined }, 1);
  expect(read(note)).toBe('CONNECT ');
});

it('has what a server is at: no request that was answered, and none whose client has left', async () => {
  const note = new LastRequest();
  const tracker = new RequestTracker();
  tracker.reports.lastRequest = note;
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
    expect(read(note)).toBe(`GET ${path}`);
    return { request, response };
  };

  const answered = await ask('/answered');
  answered.response.end();
  await vi.waitUntil(() => read(note) === '');
  const left = await ask('/left');
  left.request.destroy();
  await vi.waitUntil(() => read(note) === '');
});
