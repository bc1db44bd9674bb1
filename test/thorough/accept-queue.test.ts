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
  /** Bursts also come to workers that have nothing to do; where one accepts as another does, once. */
  readonly idleToo?: true;
  readonly options: () => Promise<ClusterOptions> | ClusterOptions;
  readonly targets?: (cluster: ClusterProcess) => readonly Target[];
}

const LISTENING: readonly Listening[] = [
  { name: 'shared', idleToo: true, options: () => ({ balancing: 'shared' }) },
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
  { name: 'round-robin', idleToo: true, options: () => ({ balancing: 'round-robin' }) },
  {
    name: 'a unix socket',
    options: () => ({ path: join(temporaryDirectory(), 'app.sock') }),
    targets: ({ url }) => [{ path: url.replace(/^unix:/, '') }],
  },
  { name: 'standalone', idleToo: true, options: () => ({ workers: 0 }) },
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

/** Ends it under a burst of connections, of which each is answered. */
async function expectShutdownServes(
  cluster: ClusterProcess,
  { places, blocked }: { places: readonly Target[]; blocked: boolean },
): Promise<void> {
  if (blocked) await block(cluster);
  const burst = new Burst(places, { each: CLIENTS / places.length });
  await burst.connected;

  cluster.kill('SIGTERM');

  const { [SERVED]: closing = 0, [SERVED_BEFORE]: before = 0, ...lost } = await burst.outcomes();
  expect(lost).toEqual({});
  expect(closing + before).toBe(CLIENTS);
  // What is accepted between a block and the signal is little.
  if (blocked) expect(closing).toBeGreaterThan(CLIENTS / 2);
  expect(await cluster.exited()).toEqual(EXITED_WELL);
  expect(cutBy(cluster.all('worker-stopped'))).toEqual(NOTHING_CUT);
}

describe.each(LISTENING)('with $name', ({ name, idleToo, options, targets = ofUrl }) => {
  const start = async (blockMs: number) =>
    ClusterProcess.start({
      options: {
        shutdown: { drainTimeoutMs: NEVER_MS },
        reload: { canaryMs: 0 },
        ...(await options()),
      },
      env: { ...behaviour('blocks-on-signal'), BLOCK_MS: String(blockMs) },
    });

  if (idleToo) {
    it('a shutdown serves what the kernel had accepted, with workers that are idle', async () => {
      const cluster = await start(0);
      await expectShutdownServes(cluster, { places: targets(cluster), blocked: false });
    });
  }

  // One process has no one to reload.
  const ends = name === 'standalone' ? 'a shutdown serves' : 'a reload and a shutdown serve';
  it(`${ends} what the kernel had accepted, with workers that are blocked`, async () => {
    const cluster = await start(BLOCK_MS);
    const places = targets(cluster);
    if (name !== 'standalone') {
      await block(cluster);
      const burst = new Burst(places, { each: CLIENTS / places.length, closing: true });
      await burst.connected;

      cluster.kill('SIGHUP');

      expect(await burst.outcomes()).toEqual({ [SERVED]: CLIENTS });
      await cluster.event('reload-ended', ({ outcome }) => outcome === 'completed');
      expect(cutBy(cluster.all('worker-stopped'))).toEqual(NOTHING_CUT);
    }

    await expectShutdownServes(cluster, { places, blocked: true });
  });
});
