import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { goesAround, openAddress } from '../../../../src/tools/cli/open-address.js';

async function listening(host: string): Promise<number> {
  const server = createServer((socket) => socket.destroy());
  await once(server.listen(0, host), 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

it('a port that others reach is found, with the address by which they do', async () => {
  const port = await listening('127.0.0.1');
  expect(await openAddress(port, ['127.0.0.2', '127.0.0.1'])).toBe(`127.0.0.1:${port}`);
  expect(goesAround('10.0.0.5:3000')).toMatch(/^the workers answer at 10\.0\.0\.5:3000 as well/);
});

it('a port that only loopback has is open to nobody else', async () => {
  expect(await openAddress(await listening('127.0.0.1'))).toBeUndefined();
});
