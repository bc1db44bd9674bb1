import { describe, expect, it, vi } from 'vitest';
import { AddressUnavailableError } from '../../../../src/contract/errors/index.js';
import type { PrimaryMessage } from '../../../../src/contract/ipc/index.js';
import { Askers } from '../../../../src/supervisor/serve/askers.js';
import type { Asker } from '../../../../src/supervisor/decide/cluster-state.js';
import type { ClusterSnapshot } from '../../../../src/contract/snapshot/index.js';

const RESULT = { outcome: 'completed', generation: 1, reason: null } as const;
const RESTARTED = { outcome: 'aborted', slot: 1, reason: 'it died' } as const;
const SNAPSHOT = { desired: 2 } as ClusterSnapshot;
const TAKEN = new AddressUnavailableError('127.0.0.1:3001', new Error('taken'));
const WORKER: Asker = { by: 'worker', worker: 7, slot: 1, id: 5 };

function start() {
  const send = vi.fn<(worker: number, message: PrimaryMessage) => void>();
  const asked: Asker[] = [];
  const askers = new Askers(send, (event) => {
    if ('asker' in event) asked.push(event.asker);
  });
  return {
    askers,
    asked,
    sent: send.mock.calls,
    call: () => askers.reload('test'),
  };
}

describe('whoever calls', () => {
  it('is told what became of its own call, by a promise', async () => {
    const { askers, asked, call, sent } = start();
    const scale = () => askers.scale(2, 'test');
    const [reload, scaling, refused] = [call(), scale(), scale()];
    const restart = askers.restart(1, 'test');
    askers.scaled(asked[1]!, SNAPSHOT);
    askers.restarted(asked[3]!, RESTARTED);
    askers.refused(asked[2]!, TAKEN);
    askers.reloaded(asked[0]!, RESULT);
    expect(await restart).toBe(RESTARTED);
    expect(await Promise.allSettled([reload, scaling, refused])).toEqual([
      { status: 'fulfilled', value: RESULT },
      { status: 'fulfilled', value: SNAPSHOT },
      { status: 'rejected', reason: TAKEN },
    ]);
    expect(sent).toEqual([]);
  });

  it('is told once', async () => {
    const { askers, asked, call } = start();
    const call1 = call();
    askers.reloaded(asked[0]!, RESULT);
    askers.refused(asked[0]!, TAKEN);
    await expect(call1).resolves.toBe(RESULT);
  });
});

describe('a worker that asks', () => {
  it('is told by a message, with the number of its question', () => {
    const { askers, sent } = start();
    askers.reloaded(WORKER, RESULT);
    askers.scaled(WORKER, SNAPSHOT);
    expect(sent).toEqual([
      [7, { type: 'reloaded', id: 5, result: RESULT }],
      [7, { type: 'scaled', id: 5, snapshot: SNAPSHOT }],
    ]);
  });

  it.each([
    ['with the address that could not be had', TAKEN, '127.0.0.1:3001', 'taken'],
    ['with any other error too: it would wait for ever', new Error('odd'), '', 'odd'],
  ])('is refused %s', (_, error, address, message) => {
    const { askers, sent } = start();
    askers.refused(WORKER, error);
    expect(sent).toMatchObject([
      [7, { type: 'scale-refused', id: 5, address, cause: { message } }],
    ]);
  });
});
