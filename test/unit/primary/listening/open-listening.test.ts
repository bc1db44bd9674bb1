import { expect, it, onTestFinished } from 'vitest';
import { openListening } from '../../../../src/primary/listening/open-listening.js';
import { freePorts } from '../../../support/free-ports.js';

it('has a socket for each slot', async () => {
  const address = { kind: 'tcp', host: '127.0.0.1', port: await freePorts(2) } as const;
  const listening = await openListening({ address, balancing: 'ports', workers: 2 });
  onTestFinished(() => listening.close());

  expect(listening.sockets).toHaveLength(2);
});
