import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { PrimaryMessage } from '../../src/ipc/index.js';
import type { Surroundings } from '../../src/primary/lifecycle.js';
import { Verification } from '../../src/primary/verification.js';
import { WorkerHandle } from '../../src/primary/worker-handle.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const READY_TIMEOUT_MS = 30_000;
const WRONG = { name: 'ClusterConfigurationError', message: 'a thread cannot import /a.js' };

function start({ candidates = false } = {}) {
  const workers: WorkerHandle[] = [];
  const sent: [number, PrimaryMessage['type']][] = [];
  const told: string[] = [];
  const recovery = { everReady: false };
  const around = {
    options: { readyTimeoutMs: READY_TIMEOUT_MS },
    listening: { url: 'http://shared' },
    table: { workers },
    recovery,
    succession: {
      proven: ({ identity }: WorkerHandle) => told.push(`proven ${identity.slot}`),
      left: (_worker: WorkerHandle, reason: string) => {
        if (candidates) told.push(`failed ${reason}`);
        return candidates;
      },
    },
    shutdown: { giveUp: (error: Error) => told.push(`gave up ${error.message}`) },
    serving: ({ url }: { url: string }) => told.push(`serving ${url}`),
  } as unknown as Surroundings;
  const verification = new Verification(around);
  return {
    verification,
    sent,
    told,
    ready: (slot: number, { verifiable = true, generation = 0 } = {}): WorkerHandle => {
      const worker = new WorkerHandle(
        { slot, generation, pid: 100 + slot },
        {
          isConnected: () => true,
          send: (message) => sent.push([slot, (message as PrimaryMessage).type]),
          kill: (signal) => void told.push(`${signal} ${slot}`),
        },
      );
      worker.enter('ready');
      workers.push(worker);
      verification.ready(worker, { type: 'ready', url: `http://${slot}`, verifiable });
      return worker;
    },
  };
}

describe('the start of a cluster', () => {
  it('is over with the first worker that is ready, where there are no threads', () => {
    const { ready, told, sent } = start();
    ready(1, { verifiable: false });
    ready(0, { verifiable: false });
    expect([told, sent]).toEqual([['proven 1', 'serving http://1', 'proven 0'], []]);
  });

  it('is over once one worker has found that its threads can do their work', () => {
    const { verification, ready, told, sent } = start();
    const [first, second] = [ready(1), ready(0)];
    expect([told, sent, second.unproven]).toEqual([[], [[1, 'verify']], true]);
    verification.answered(second, null); // was not asked
    expect(told).toEqual([]);
    verification.answered(first, null);
    expect([told, second.unproven]).toEqual([['proven 1', 'serving http://1'], false]);
    ready(0);
    expect(sent).toHaveLength(1);
  });

  it('fails with what they cannot load', () => {
    const { verification, ready, told } = start();
    verification.answered(ready(0), WRONG);
    expect(told).toEqual([`gave up ${WRONG.message}`]);
  });

  it('asks another where the first one is gone', () => {
    const { verification, ready, told, sent } = start();
    const [first, second] = [ready(0), ready(1)];
    first.enter('exited');
    verification.left(first);
    expect(sent).toEqual([
      [0, 'verify'],
      [1, 'verify'],
    ]);
    verification.left(first);
    verification.answered(second, null);
    expect(told).toEqual(['proven 1', 'serving http://0']);
  });

  it('takes no longer than a boot may', () => {
    const { ready, told } = start();
    const worker = ready(0);
    vi.advanceTimersByTime(READY_TIMEOUT_MS);
    expect(told).toEqual(['SIGKILL 0']);
    expect(worker.condemned).toEqual({
      cause: 'boot',
      detail:
        'boot timed out: its threads had not loaded within 30000 ms (readyTimeoutMs) and it was killed',
    });
  });
});

describe('a reload', () => {
  it('has its first worker asked also where the one before it has not answered yet', () => {
    const { verification, ready, sent, told } = start();
    const before = ready(0);
    const candidate = ready(0, { generation: 1 });
    expect(sent).toHaveLength(1);
    verification.answered(before, null);
    expect(sent).toHaveLength(2);
    expect(candidate.unproven).toBe(true);
    verification.answered(candidate, null);
    expect(candidate.unproven).toBe(false);
    expect(told.filter((each) => each === 'proven 0')).toHaveLength(2);
  });

  it('has its first worker asked, and no other', () => {
    const { verification, ready, sent, told } = start({ candidates: true });
    verification.answered(ready(0), null);
    verification.answered(ready(0, { generation: 1 }), null);
    ready(1, { generation: 1 });
    expect(sent).toEqual([
      [0, 'verify'],
      [0, 'verify'],
    ]);
    expect(told.filter((each) => each.startsWith('serving'))).toHaveLength(1);
  });

  it('fails with what its threads cannot load, and where they take too long', () => {
    const { verification, ready, told } = start({ candidates: true });
    verification.answered(ready(0), null);
    verification.answered(ready(0, { generation: 1 }), WRONG);
    ready(0, { generation: 2 });
    vi.advanceTimersByTime(READY_TIMEOUT_MS);
    expect(told.slice(2)).toEqual([
      `failed ClusterConfigurationError: ${WRONG.message}`,
      'failed boot timed out: its threads had not loaded within 30000 ms (readyTimeoutMs)',
    ]);
  });
});
