import { setTimeout as delay } from 'node:timers/promises';
import { median } from '../../statistics.mjs';
import { describeProcess, SharedCluster } from './shared-cluster.mjs';

const MIB = 1_024 * 1_024;
/** Maximum size of the app's cache. */
const BOUND_MIB = 128;
/** Memory is read after this time, when its size has settled. */
const SETTLED_MS = 3_000;
const SIZES = [100, 64 * 1_024];
const STARTS = 5;

/** Memory of the hub's process before and after more than twice the cache's maximum was stored. */
export async function measureBytes({ node, progress }) {
  const rows = [];
  for (const bytes of SIZES) {
    const options = { node, workers: 1, parts: ['cache'] };
    rows.push(
      await SharedCluster.with(options, async (cluster) => {
        const pid = cluster.primaryPid;
        const rss = () => describeProcess(pid).rssBytes / MIB;
        await delay(SETTLED_MS);
        const before = rss();
        let peak = before;
        const watch = setInterval(() => (peak = Math.max(peak, rss())), 20);
        let bytesSet = 0;
        while (bytesSet < 2 * BOUND_MIB * MIB) {
          const [{ count }] = await cluster.run(`fill ${bytes}`, { ms: 1_000, at: 64 });
          bytesSet += count * (bytes + 256);
        }
        const full = rss();
        await delay(SETTLED_MS);
        clearInterval(watch);
        progress(`bytes: values of ${bytes} bytes`);
        return {
          part: 'bytes',
          work: `128 MiB of values of ${bytes} bytes`,
          beforeMib: before,
          takenMib: full - before,
          settledMib: rss() - before,
          peakMib: peak - before,
          ratio: (rss() - before) / BOUND_MIB,
        };
      }),
    );
  }
  return rows;
}

/** Memory of primary and worker, with and without imports of package entries that are not used. */
export async function measureUnused({ node, workers, progress }) {
  const runs = { without: [], imported: [] };
  for (let start = 0; start < STARTS; start += 1) {
    for (const name of start % 2 === 0 ? ['without', 'imported'] : ['imported', 'without']) {
      const env = name === 'imported' ? { IMPORTED: '1' } : {};
      await SharedCluster.with({ node, workers, parts: [], env }, async (cluster) => {
        await delay(SETTLED_MS / 2);
        const { primaryPid, pids } = cluster;
        const each = pids.filter((pid) => pid !== primaryPid).map(describeProcess);
        runs[name].push({ primary: describeProcess(primaryPid), worker: each[0] });
      });
    }
    progress(`unused: start ${start + 1}/${STARTS}`);
  }
  return Object.entries(runs).map(([name, all]) => ({
    part: 'unused',
    work: name === 'imported' ? 'all entries imported, none used' : 'no entry imported',
    primaryMib: median(all.map(({ primary }) => primary.rssBytes)) / MIB,
    workerMib: median(all.map(({ worker }) => worker.rssBytes)) / MIB,
    primaryThreads: median(all.map(({ primary }) => primary.threads)),
    workerThreads: median(all.map(({ worker }) => worker.threads)),
  }));
}
