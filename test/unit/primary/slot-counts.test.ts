import { describe, expect, it } from 'vitest';
import { SlotCounts } from '../../../src/primary/serve/slot-counts.js';
import type { WorkerStats } from '../../../src/contract/snapshot/index.js';
import { STATS } from '../support/fake-worker.js';

const stats = (about: Partial<WorkerStats>) => ({ ...STATS, ...about });
const served = (requestsTotal: number) => stats({ requestsTotal });
const used = (cpuSecondsTotal: number, gcSecondsTotal: number) =>
  stats({ cpuSecondsTotal, gcSecondsTotal });

describe('requestsTotal of a slot', () => {
  it('is that of both processes of a slot that is being replaced, also once the old one is gone', () => {
    const counts = new SlotCounts();
    expect(counts.totals([served(100), served(5)]).requestsTotal).toBe(105);
    counts.keep(served(100));
    expect(counts.totals([served(5)]).requestsTotal).toBe(105);
  });

  it('never falls, whatever becomes of its workers', () => {
    const counts = new SlotCounts();
    let last = 0;
    let all = 0;
    const check = (...live: (WorkerStats | undefined)[]) => {
      const { requestsTotal } = counts.totals(live);
      expect(requestsTotal).toBeGreaterThanOrEqual(last);
      last = requestsTotal;
    };
    for (let life = 0; life < 50; life += 1) {
      check(undefined);
      for (let requests = 0; requests <= life % 4; requests += 1) check(served(requests));
      all += life % 4;
      counts.keep(served(life % 4));
      check();
    }
    expect(counts.totals([]).requestsTotal).toBe(all);
  });
});

describe('rebalancedConnectionsTotal of a slot', () => {
  const moved = (rebalancedConnectionsTotal: number) => stats({ rebalancedConnectionsTotal });

  it('is 0 before a worker has said anything, and where it died before', () => {
    const counts = new SlotCounts();
    expect(counts.totals([undefined])).toMatchObject({ rebalancedConnectionsTotal: 0 });
    counts.keep(undefined);
    expect(counts.totals([])).toMatchObject({ rebalancedConnectionsTotal: 0, requestsTotal: 0 });
  });

  it('is that of all its processes, gone ones too, and apart from the requests', () => {
    const counts = new SlotCounts();
    const both = { rebalancedConnectionsTotal: 6, requestsTotal: 20 };
    expect(counts.totals([moved(5), moved(1)])).toMatchObject(both);
    counts.keep(moved(5));
    expect(counts.totals([moved(1)])).toMatchObject(both);
    counts.keep(moved(1));
    expect(counts.totals([])).toMatchObject(both);
  });
});

describe('the CPU time of a slot', () => {
  it('does not fall by the last bit of a double when a worker dies before another', () => {
    // 0.1 + 0.2 + 0.3 is 0.6000000000000001 or 0.6, as they are grouped.
    const workers = [0.1, 0.2, 0.3].map((seconds) => used(seconds, seconds));
    const sums = workers.flatMap((first) => {
      const counts = new SlotCounts();
      const totals = [counts.totals(workers)];
      const left = new Set(workers);
      for (const worker of [first, ...workers.filter((each) => each !== first)]) {
        left.delete(worker);
        counts.keep(worker);
        totals.push(counts.totals([...left]));
      }
      return totals.flatMap(({ cpuSecondsTotal, gcSecondsTotal }) => [
        cpuSecondsTotal,
        gcSecondsTotal,
      ]);
    });
    expect(new Set(sums)).toEqual(new Set([0.6]));
  });

  it('is told to the microsecond', () => {
    expect(new SlotCounts().totals([used(1.234_567, 0.000_001)])).toMatchObject({
      cpuSecondsTotal: 1.234_567,
      gcSecondsTotal: 0.000_001,
    });
  });
});
