import { afterEach, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { getJson } from '../support/http-client.js';
import { offloadOptions } from '../support/offload.js';

afterEach(stopAll);

describe.each(['app', 'nest11'] as const)('an app in workers (%s)', (program) => {
  it('says in its lines and in its code which worker it is', async () => {
    const cluster = await ClusterProcess.start({
      program,
      env: { ...behaviour('worker-lines'), ...offloadOptions({ threads: 1 }) },
    });
    const lines = cluster.output.split('\n');

    for (const [slot, pid] of cluster.workerPids.entries()) {
      // The lines of the app include the lines of Nest itself.
      const text = lines.filter((line) => line.startsWith(`[Nest] ${pid} `));
      expect(text.join('\n')).toContain(' LOG [RouterExplorer] Mapped {/hello, GET} route');
      expect(text.filter((line) => !line.startsWith(`[Nest] ${pid} w${slot}  - `))).toEqual([]);

      const json = lines
        .filter((line) => line.startsWith('{"level"'))
        .map((line) => JSON.parse(line) as { pid: number });
      expect(json.filter((line) => line.pid === pid)).toEqual([
        {
          level: 'warn',
          pid,
          timestamp: expect.any(Number),
          message: 'hungry',
          context: 'Cats',
          worker: slot,
          generation: 0,
        },
        {
          level: 30,
          pid,
          time: expect.any(Number),
          msg: 'purred',
          worker: slot,
          generation: 0,
        },
      ]);
    }

    const identities = cluster.workerPids.map((pid, slot) => ({ slot, pid, generation: 0 }));
    const { worker, context } = (await getJson(cluster.url, '/who')).body;
    expect(identities).toContainEqual(worker);
    expect(context).toEqual({ worker });
    const inThread = (await getJson(cluster.url, '/thread/who')).body;
    expect(inThread.isMainThread).toBe(false);
    expect(identities).toContainEqual(inThread.worker);
  });
});
