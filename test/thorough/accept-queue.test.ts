import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ClusterOptions } from 'nestjs-cluster';
import { afterEach, describe, expect, it } from 'vitest';
import { HAS_REUSE_PORT } from '../support/adapters.js';
import { behaviour } from '../support/behaviour.js';
import { Burst, SERVED, SERVED_BEFORE, type Target } from '../support/burst.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { cutBy, NEVER_MS, NOTHING_CUT } from '../support/drain.js';
import { freePorts } from '../support/free-ports.js';
import { IS_FIRST_RUN } from '../support/once.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

afterEach(stopAll);

const CLIENTS = 200;

const EXITED_WELL = { code: 0, signal: null };

/** One way to listen: the options, and where clients find it. */
interface Listening {
  readonly name: string;
  /** Runs only on vitest's own Node, because Node accepts here as it does with 'shared'. */
  readonly once?: true;
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
    once: true,
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
    once: true,
    options: () => ({ path: join(temporaryDirectory(), 'app.sock') }),
    targets: ({ url }) => [{ path: url.replace(/^unix:/, '') }],
  },
  { name: 'standalone', options: () => ({ workers: 0 }) },
];

const ofUrl = ({ url }: ClusterProcess): readonly Target[] => {
  const { hostname, port } = new URL(url);
  return [{ host: hostname, port: Number(port) }];
};

/** A cluster, and the file by which its processes are blocked. */
interface Started {
  readonly cluster: ClusterProcess;
  readonly file: string;
}

/** Every process that serves is blocked until the file is gone, and says so. */
async function block({ cluster, file }: Started): Promise<void> {
  writeFileSync(file, '');
  const before = cluster.output.length;
  const pids = cluster.workerPids.length > 0 ? cluster.workerPids : [cluster.pid];
  for (const pid of pids) process.kill(pid, 'SIGUSR2');
  await cluster.until('blocked workers', () =>
    pids.every((pid) => cluster.output.slice(before).includes(`blocking ${pid}\n`)),
  );
}

/** Ends it under a burst of connections, of which each is answered. */
async function expectShutdownServes(started: Started, places: readonly Target[]): Promise<void> {
  const { cluster, file } = started;
  await block(started);
  const burst = new Burst(places, { each: CLIENTS / places.length });
  await burst.connected;

  const draining = cluster.all('worker-draining').length + cluster.workerPids.length;
  cluster.kill('SIGTERM');
  await cluster.until('all to drain', () => cluster.all('worker-draining').length >= draining);
  rmSync(file, { force: true });

  const { [SERVED]: closing = 0, [SERVED_BEFORE]: before = 0, ...lost } = await burst.outcomes();
  expect(lost).toEqual({});
  expect(closing + before).toBe(CLIENTS);
  // What is accepted between a block and the signal is little.
  expect(closing).toBeGreaterThan(CLIENTS / 2);
  expect(await cluster.exited()).toEqual(EXITED_WELL);
  expect(cutBy(cluster.all('worker-stopped'))).toEqual(NOTHING_CUT);
}

const WAYS = LISTENING.filter(({ once }) => IS_FIRST_RUN || !once);

describe.each(WAYS)('with $name', ({ name, options, targets = ofUrl }) => {
  const start = async (): Promise<Started> => {
    const file = join(temporaryDirectory(), 'block');
    const cluster = await ClusterProcess.start({
      options: {
        shutdown: { drainTimeoutMs: NEVER_MS },
        hangTimeoutMs: 60_000,
        ...(await options()),
      },
      env: { ...behaviour('crashes#blocksOnSignal'), TEST_BLOCK: file },
    });
    return { cluster, file };
  };

  // One process has no one to reload.
  const ends = name === 'standalone' ? 'a shutdown serves' : 'a reload and a shutdown serve';
  it(`${ends} what the kernel had accepted, with workers that are blocked`, async () => {
    const started = await start();
    const { cluster, file } = started;
    const places = targets(cluster);
    if (name !== 'standalone') {
      await block(started);
      const burst = new Burst(places, { each: CLIENTS / places.length, closing: true });
      await burst.connected;

      cluster.kill('SIGHUP');
      await cluster.event('worker-draining');
      rmSync(file);

      expect(await burst.outcomes()).toEqual({ [SERVED]: CLIENTS });
      await cluster.event('reload-ended', ({ outcome }) => outcome === 'completed');
      expect(cutBy(cluster.all('worker-stopped'))).toEqual(NOTHING_CUT);
    }

    await expectShutdownServes(started, places);
  });
});
