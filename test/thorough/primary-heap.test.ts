import { afterEach, expect, it } from 'vitest';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';

afterEach(stopAll);

/** At SIGUSR2: makes garbage of which some lives for a while, and prints the largest young generation. */
const CHURN = `
  import { getHeapSpaceStatistics } from 'node:v8';
  process.on('SIGUSR2', () => {
    const alive = [];
    let most = 0;
    for (let i = 0; i < 2_000_000; i += 1) {
      alive[i % 50_000] = { i, list: [i] };
      if (i % 100_000 > 0) continue;
      const young = getHeapSpaceStatistics().find((space) => space.space_name === 'new_space');
      most = Math.max(most, young.physical_space_size);
    }
    console.log('young generation: ' + most);
  });
`;

it('keeps the young generation of the primary below 6 MB, also if it makes much garbage', async () => {
  const cluster = await ClusterProcess.start({
    options: { workers: 1 },
    execArgv: ['--import', `data:text/javascript,${encodeURIComponent(CHURN)}`],
  });
  cluster.kill('SIGUSR2');
  const size = () => /^young generation: (\d+)$/m.exec(cluster.output)?.[1];
  await cluster.until('the size', () => size() !== undefined);
  expect(Number(size())).toBeLessThan(6e6);
});
