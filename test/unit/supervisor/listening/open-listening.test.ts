import { expect, it, onTestFinished } from 'vitest';
import { openListening } from '../../../../src/supervisor/listening/open-listening.js';
import { freePorts } from '../../../support/free-ports.js';

it.each([
  [undefined, 1],
  [{ min: 1, max: 3 }, 3],
])('with the bounds %o has a socket for each slot that there may be', async (elastic, sockets) => {
  const address = { kind: 'tcp', host: '127.0.0.1', port: await freePorts(3) } as const;
  const listening = await openListening({ address, balancing: 'ports', elastic, workers: 1 });
  onTestFinished(() => listening.close());

  expect(listening.sockets).toHaveLength(sockets);
});
