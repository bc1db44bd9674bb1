import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { expect, it } from 'vitest';
import { NODE } from '../support/cluster-process.js';
import { plainEnvironment, runCommand } from '../support/run-command.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const V8_FLAGS = join(import.meta.dirname, '../../src/supervisor/processes/v8-flags.ts');

/** Makes garbage of which some lives for a while, and prints the largest size of the young generation. */
const CHURN = `
  import { getHeapSpaceStatistics } from 'node:v8';
  import { keepYoungGenerationSmall } from './v8-flags.mjs';
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
  const cwd = temporaryDirectory();
  const bundle = await rolldown({ input: V8_FLAGS, platform: 'node' });
  await bundle.write({ file: join(cwd, 'v8-flags.mjs') });
  const { stdout, stderr } = await runCommand(NODE, ['--input-type=module', '-e', CHURN], {
    cwd,
    env: plainEnvironment(),
  });
  expect(stderr).toBe('');
  expect(Number(stdout)).toBeGreaterThan(0);
  expect(Number(stdout)).toBeLessThan(6e6);
});
