import { describe, expect, it } from 'vitest';
import { InspectionError } from '../../../../src/contract/errors/index.js';
import { roomForSnapshot } from '../../../../src/supervisor/serve/snapshot-room.js';
import { STATS } from '../../support/fake-worker.js';

const MB = 1e6;
/** MB that V8 needs to make a snapshot of a heap of 100 MB. It is less since Node 24. */
const GRAPH = /^v2[02]\./.test(process.version) ? 1_200 : 900;
const NEEDED = 150 + GRAPH;
const NO_LIMIT = { softLimitBytes: Infinity, hardLimitBytes: Infinity };
const WORKER = {
  identity: { slot: 3, pid: 7, generation: 0 },
  stats: { ...STATS, heapUsedBytes: 100 * MB },
};

/** Asks whether there is memory for a snapshot of a worker of 150 MB with a heap of 100 MB. */
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
    expect(() => judge(NEEDED * MB)).not.toThrow();
    expect(() => judge((NEEDED - 1) * MB)).toThrow(InspectionError);
    expect(() => judge((NEEDED - 1) * MB)).toThrow(
      `a heap snapshot of worker=3 needs ${NEEDED} MB of memory (another worker of 150 MB, and ${GRAPH} MB for the snapshot), and ${NEEDED - 1} MB are available; take a heap profile`,
    );
  });

  it('needs room below the limit at which its worker is killed', () => {
    expect(() => judge(Infinity, NEEDED * MB)).not.toThrow();
    expect(() => judge(Infinity, (NEEDED - 1) * MB)).toThrow(
      `above memory.hardLimitBytes (${NEEDED - 1} MB)`,
    );
  });
});
