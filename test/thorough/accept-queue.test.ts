import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import type { ClusterOptions } from 'nestjs-cluster';
import { afterEach, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { Burst, SERVED, SERVED_BEFORE, type Target } from '../support/burst.js';
import { ClusterProcess, NODE, stopAll } from '../support/cluster-process.js';
import { cutBy, NEVER_MS, NOTHING_CUT } from '../support/drain.js';
import { freePorts } from '../support/free-ports.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

afterEach(stopAll);

const CLIENTS = 200;
const BLOCK_MS = 300;

const [MAJOR, MINOR] = execFileSync(NODE, ['-p', 'process.versions.node'], { encoding: 'utf8' })
  .split('.')
  .map(Number) as [number, number];
const HAS_REUSE_PORT = MAJOR > 22 || (MAJOR === 22 && MINOR >= 12);

const EXITED_WELL = { code: 0, signal: null };

/** One way to listen: the options, and where clients find it. */
interface Listening {
  readonly name: string;
  readonly options: () => Promise<ClusterOptions> | ClusterOptions;
  readonly targets?: (cluster: ClusterProcess) => readonly Target[];
}

const LISTENING: readonly Listening[] = [
  { name: 'shared', options: () => ({ balancing: 'shared' }) },
  ...(HAS_REUSE_PORT
    ? [{ name: 'reuse-port', options: () => ({ balancing: 'reuse-port' }) as const }]
    : []),
  {
    name: 'ports',
    options: async () => ({ balancing: 'ports', port: await freePorts(2) }),
    targets: (cluster) =>
      (cluster.all('listening')[0]!['ports'] as number[]).map((port) => ({
        host: '127.0.0.1',
        port,
      })),
  },
  { name: 'round-robin', options: () => ({ balancing: 'round-robin' }) },
  {
    name: 'a unix socket',
    options: () => ({ path: join(temporaryDirectory(), 'app.sock') }),
    targets: ({ url }) => [{ path: url.replace(/^unix:/, '') }],
  },
  { name: 'standalone', options: () => ({ workers: 0 }) },
];

const ofUrl = ({ url }: ClusterProcess): readonly Target[] => {
  const { hostname, port } = new URL(url);
  return [{ host: hostname, port: Number(port) }];
};

/** Every process that serves is blocked, and says so. */
async function block(cluster: ClusterProcess): Promise<void> {
  const pids = cluster.workerPids.length > 0 ? cluster.workerPids : [cluster.pid];
  for (const pid of pids) process.kill(pid, 'SIGUSR2');
  await cluster.until('blocked workers', () =>
    pids.every((pid) => cluster.output.includes(`blocking ${pid}\n`)),
  );
}

describe.each(LISTENING)('with $name', ({ name, options, targets = ofUrl }) => {
  it.each([
    ['idle', 0],
    ['blocked', BLOCK_MS],
  ])(
    'a shutdown serves what the kernel had accepted, with workers that are %s',
    async (_, blockMs) => {
      const cluster = await ClusterProcess.start({
        options: { shutdown: { drainTimeoutMs: NEVER_MS }, ...(await options()) },
        env: { ...behaviour('blocks-on-signal'), BLOCK_MS: String(blockMs) },
      });
      const places = targets(cluster);
      if (blockMs > 0) await block(cluster);
      const burst = new Burst(places, { each: CLIENTS / places.length });
      await burst.connected;

      cluster.kill('SIGTERM');

      const {
        [SERVED]: closing = 0,
        [SERVED_BEFORE]: before = 0,
        ...lost
      } = await burst.outcomes();
      expect(lost).toEqual({});
      expect(closing + before).toBe(CLIENTS);
      // What is accepted between a block and the signal is little.
      if (blockMs > 0) expect(closing).toBeGreaterThan(CLIENTS / 2);
      expect(await cluster.exited()).toEqual(EXITED_WELL);
      expect(cutBy(cluster.all('worker-stopped'))).toEqual(NOTHING_CUT);
    },
  );

  if (name === 'standalone') return; // one process has no one to reload

  it('a reload serves what the kernel had accepted for workers that are blocked', async () => {
    const cluster = await ClusterProcess.start({
      options: { shutdown: { drainTimeoutMs: NEVER_MS }, ...(await options()) },
      env: { ...behaviour('blocks-on-signal'), BLOCK_MS: String(BLOCK_MS) },
    });
    const places = targets(cluster);
    await block(cluster);
    const burst = new Burst(places, { each: CLIENTS / places.length, closing: true });
    await burst.connected;

    cluster.kill('SIGHUP');

    expect(await burst.outcomes()).toEqual({ [SERVED]: CLIENTS });
    await cluster.event('reload-ended', ({ outcome }) => outcome === 'completed');
  });
});
