import { describe, expect, it } from 'vitest';
import { InspectionError } from '../../src/errors/index.js';
import { roomForSnapshot } from '../../src/primary/snapshot-room.js';
import { STATS } from './fake-worker.js';

const MB = 1e6;
const NO_LIMIT = { softLimitBytes: Infinity, hardLimitBytes: Infinity };
const WORKER = {
  identity: { slot: 3, pid: 7, generation: 0 },
  stats: { ...STATS, heapUsedBytes: 100 * MB },
};

/** Of a worker of 150 MB, of which the heap has 100. */
function judge(availableBytes: number, hardLimitBytes = Infinity): void {
  roomForSnapshot(
    WORKER,
    { ...NO_LIMIT, hardLimitBytes },
    () => availableBytes,
    () => 150 * MB,
  );
}

describe('a heap snapshot', () => {
  it('needs room for the worker that takes over and for what V8 makes of the heap', () => {
    expect(() => judge(1_350 * MB)).not.toThrow();
    expect(() => judge(1_349 * MB)).toThrow(InspectionError);
    expect(() => judge(1_349 * MB)).toThrow(
      'a heap snapshot of worker=3 needs 1350 MB of memory (another worker of 150 MB, and 1200 MB for the snapshot), and 1349 MB are available; take a heap profile',
    );
  });

  it('needs room below the limit at which its worker is killed', () => {
    expect(() => judge(Infinity, 1_350 * MB)).not.toThrow();
    expect(() => judge(Infinity, 1_349 * MB)).toThrow('above memory.hardLimitBytes (1349 MB)');
  });
});
