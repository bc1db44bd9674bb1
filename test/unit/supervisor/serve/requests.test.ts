import { describe, expect, it, vi } from 'vitest';
import { ClusterAddressError } from '../../../../src/contract/errors/index.js';
import type { PrimaryMessage } from '../../../../src/contract/messages.js';
import { Requests } from '../../../../src/supervisor/serve/requests.js';
import type { Requester } from '../../../../src/supervisor/decide/cluster-state.js';
import type { Answer } from '../../../../src/supervisor/decide/effect.js';
import type { ClusterSnapshot } from '../../../../src/contract/snapshot/index.js';

const RESULT = { outcome: 'completed', generation: 1, reason: null } as const;
const RESTARTED = { outcome: 'aborted', slot: 1, reason: 'it died' } as const;
const SNAPSHOT = { desired: 2 } as ClusterSnapshot;
const TAKEN = new ClusterAddressError('127.0.0.1:3001', new Error('taken'));
const WORKER: Requester = { by: 'worker', worker: 7, slot: 1, id: 5 };

function start() {
  const send = vi.fn<(worker: number, message: PrimaryMessage) => void>();
  const asked: Requester[] = [];
  const requests = new Requests(
    send,
    (event) => {
      if ('requester' in event) asked.push(event.requester);
    },
    () => SNAPSHOT,
  );
  const answer = (requester: Requester, given: Answer) =>
    requests.answer({ type: 'answer', requester, answer: given });
  return { requests, answer, asked, sent: send.mock.calls };
}

describe('whoever calls', () => {
  it('is told what became of its own call, by a promise', async () => {
    const { requests, answer, asked, sent } = start();
    const scale = () => requests.scale(2, 'test');
    const [reload, scaling, refused] = [requests.reload('test'), scale(), scale()];
    const restart = requests.restart(1, 'test');
    answer(asked[1]!, { type: 'scaled' });
    answer(asked[3]!, { type: 'restarted', result: RESTARTED });
    answer(asked[2]!, { type: 'scale-refused', error: TAKEN });
    answer(asked[0]!, { type: 'reloaded', result: RESULT });
    expect(await restart).toBe(RESTARTED);
    expect(await Promise.allSettled([reload, scaling, refused])).toEqual([
      { status: 'fulfilled', value: RESULT },
      { status: 'fulfilled', value: SNAPSHOT },
      { status: 'rejected', reason: TAKEN },
    ]);
    expect(sent).toEqual([]);
  });
});

describe('a worker that asks', () => {
  it('is told by a message, with the number of its question', () => {
    const { answer, sent } = start();
    answer(WORKER, { type: 'reloaded', result: RESULT });
    answer(WORKER, { type: 'scaled' });
    expect(sent).toEqual([
      [7, { type: 'answer', id: 5, result: RESULT }],
      [7, { type: 'answer', id: 5, result: SNAPSHOT }],
    ]);
  });

  it.each([
    ['with the address that could not be had', TAKEN, '127.0.0.1:3001', 'taken'],
    ['with any other error too: it would wait for ever', new Error('odd'), undefined, 'odd'],
  ])('is refused %s', (_, error, address, message) => {
    const { answer, sent } = start();
    answer(WORKER, { type: 'scale-refused', error });
    expect(sent).toMatchObject([[7, { type: 'answer', id: 5, refusal: { address, message } }]]);
  });
});
