import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { refuseFailingRoute } from '../../../../src/tools/tune/preconditions.js';

async function route(answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

const asks = (url: string) =>
  refuseFailingRoute({ url, headers: {} }, new AbortController().signal);

describe('the route that is to be measured', () => {
  it('is asked again where it says after how long: its threads may still start', async () => {
    let asked = 0;
    const url = await route((_request, response) => {
      asked += 1;
      if (asked < 3) response.writeHead(503, { 'Retry-After': '0' });
      response.end();
    });

    await asks(url);

    expect(asked).toBe(3);
  });

  it.each([
    { status: 503, headers: {}, because: 'it does not say when to ask again' },
    { status: 503, headers: { 'Retry-After': '31' }, because: 'it would take too long' },
    { status: 503, headers: { 'Retry-After': 'tomorrow' }, because: 'it says no seconds' },
    {
      status: 429,
      headers: { 'Retry-After': '0' },
      because: 'a load would be refused all the more',
    },
  ])('is refused at once with $status where $because', async ({ status, headers }) => {
    let asked = 0;
    const url = await route((_request, response) => {
      asked += 1;
      response.writeHead(status, headers).end();
    });

    await expect(asks(url)).rejects.toThrow(`GET ${url} answers ${status}: give a route`);
    expect(asked).toBe(1);
  });
});
