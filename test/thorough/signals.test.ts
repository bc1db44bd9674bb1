import { afterEach, describe, expect, it } from 'vitest';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { request } from '../support/http-client.js';
import { agentOf } from '../support/keep-alive-agent.js';

afterEach(stopAll);

describe('a signal to one worker', () => {
  it('SIGINT, SIGHUP, SIGTTIN and SIGTTOU are left to the primary', async () => {
    const cluster = await ClusterProcess.start({ options: { workers: 1 } });
    const [pid] = cluster.workerPids as [number];
    const agent = await agentOf(cluster.url, pid);

    for (const signal of ['SIGINT', 'SIGHUP', 'SIGTTIN', 'SIGTTOU'] as const) {
      process.kill(pid, signal);

      // Its next answers come from a process that has had the signal.
      for (let i = 0; i < 3; i++) {
        const { outcome, body, headers } = await request(cluster.url, '/whoami', { agent });
        expect([signal, outcome]).toEqual([signal, 'ok']);
        expect(JSON.parse(body)).toMatchObject({ pid });
        expect(headers.connection).not.toBe('close');
      }
      expect(cluster.all('worker-died')).toEqual([]);
      expect(cluster.all('worker-draining')).toEqual([]);
      expect(cluster.all('scaling')).toEqual([]);
      expect(cluster.all('reload-started')).toEqual([]);
    }
  });
});
