import { afterEach, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, NODE, stopAll } from '../support/cluster-process.js';
import { MAIN } from '../support/command-line.js';
import { getJson, request } from '../support/http-client.js';
import { plainEnvironment, runCommand } from '../support/run-command.js';
import { anyPage } from '../support/scrape.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

afterEach(stopAll);

it('adds a worker while connections wait for the only one', async () => {
  const env = { ...behaviour('blocks'), XDG_RUNTIME_DIR: temporaryDirectory() };
  const cluster = await ClusterProcess.start({
    env,
    options: { workers: { min: 1, max: 2 }, control: {}, heartbeat: { timeoutMs: 60_000 } },
  });
  request(cluster.url, '/block-worker-0').catch(() => {}); // never answered
  await cluster.until('a block', () => cluster.output.includes('blocking worker 0'));
  const waiting = Array.from({ length: 5 }, () => getJson(cluster.url, '/block-worker-0'));

  expect(await cluster.event('scaling')).toMatchObject({
    from: 1,
    to: 2,
    reason: 'connections wait for a worker',
  });
  for (const { body } of await Promise.all(waiting)) expect(body).toEqual({ slot: 1 });
  const page = await anyPage(cluster.url);
  const added = { direction: 'up', reason: 'backlog' };
  expect(page.values('nestjs_cluster_scale_total', added)).toEqual([1]);

  const command = async (...args: readonly string[]) => {
    const commandEnv = { ...plainEnvironment(), ...env };
    const { stdout, stderr } = await runCommand(
      NODE,
      [MAIN, ...args, '--cluster', String(cluster.pid)],
      {
        cwd: '/',
        env: commandEnv,
      },
    );
    expect(stderr).toBe('');
    return stdout;
  };
  expect(await command('status')).toContain('2/2 workers ready (1 to 2, by load)');
  expect(await command('scale', 'auto')).toMatch(/scaled from 2 to 2 workers\n$/);
});
