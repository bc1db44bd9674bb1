import { afterEach, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { filesBelow } from '../support/files-below.js';
import { getJson } from '../support/http-client.js';
import { nodeFor } from '../support/nodes.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

afterEach(stopAll);

it('a second start compiles nothing, in workers and in threads', async (context) => {
  const node = nodeFor(24, context);
  const TMPDIR = temporaryDirectory();
  const cache = `${TMPDIR}/nestjs-cluster-${process.getuid!()}/compile-cache`;

  const run = async (): Promise<string[]> => {
    const cluster = await ClusterProcess.start({
      node,
      options: { workers: 1 },
      env: { ...behaviour('worker-lines'), TMPDIR },
    });
    for (const path of ['/who', '/thread/who']) {
      const { body } = await getJson(cluster.url, path);
      expect(body.compileCache).toMatch(new RegExp(`^${cache}/v24`));
    }
    cluster.kill('SIGTERM');
    await cluster.exited();
    // Node writes a file that is missing or cannot be used.
    return filesBelow(cache);
  };

  const files = await run();
  expect(files.length).toBeGreaterThan(20);
  expect(await run()).toEqual(files);
});
