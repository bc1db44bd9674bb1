import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { NODE } from '../support/cluster-process.js';
import { plainEnvironment, runCommand } from '../support/run-command.js';

const dist = fileURLToPath(new URL('../../dist/', import.meta.url));

/** Makes garbage of which some lives for a while, and prints the largest size of the young generation. */
const CHURN = `
  import { getHeapSpaceStatistics } from 'node:v8';
  import { keepYoungGenerationSmall } from './supervisor/processes/v8-flags.js';
  keepYoungGenerationSmall();
  const alive = [];
  let most = 0;
  for (let i = 0; i < 2_000_000; i += 1) {
    alive[i % 50_000] = { i, list: [i] };
    if (i % 100_000 > 0) continue;
    const young = getHeapSpaceStatistics().find((space) => space.space_name === 'new_space');
    most = Math.max(most, young.physical_space_size);
  }
  console.log(most);
`;

it('keeps the young generation of a process that makes much garbage below 6 MB', async () => {
  const { stdout, stderr } = await runCommand(NODE, ['--input-type=module', '-e', CHURN], {
    cwd: dist,
    env: plainEnvironment(),
  });
  expect(stderr).toBe('');
  expect(Number(stdout)).toBeGreaterThan(0);
  expect(Number(stdout)).toBeLessThan(6e6);
});
