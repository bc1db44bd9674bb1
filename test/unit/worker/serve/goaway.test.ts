import http2 from 'node:http2';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { closeGracefully } from '../../../../src/worker/serve/http2.js';
import { eventually } from '../../../support/eventually.js';
import { Http2Client } from '../../../support/http2-client.js';
import { Http2Tap } from '../../../support/http2-tap.js';

it('a request that crosses the GOAWAY is refused and never begun, and one that had begun is answered', async () => {
  const begun: string[] = [];
  const server = http2.createServer((request, response) => {
    begun.push(request.url);
    closeGracefully(request.stream.session!);
    response.end('answered');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const tap = await Http2Tap.to(url);
  const client = await Http2Client.open(tap.url);

  const first = client.get('/begun');
  await eventually('it begins', () => begun.length === 1);
  // Its client has heard of no GOAWAY yet.
  const second = client.get('/crossing');
  await eventually('both are sent', () => tap.requests === 2);
  tap.release();

  expect(await first).toEqual({ status: 200, body: 'answered', complete: true });
  expect(await second).toMatchObject({ status: undefined, refused: true });
  await client.closed;
  expect(begun).toEqual(['/begun']);
  await eventually('what the tap saw', () => tap.refused === 1);
  expect(tap.resets).toBe(0);
});
