import { readFileSync, rmSync } from 'node:fs';
import type { ClusterStatus } from '../../control/cluster-status.js';
import type { ProfileAnswer } from '../../control/control-api.js';
import { ClusterError, ClusterRefusedError } from '../../contract/errors/index.js';
import type { MethodProfile } from '../../contract/snapshot/index.js';
import type { ControlClient } from '../control/control-client.js';
import { addWindow, noWork, type Work } from './attribution.js';

/** A window of one worker that was not recorded. */
export interface Loss {
  readonly slot: number;
  readonly reason: string;
}

export interface Collected {
  readonly work: Work;
  /** Processes with at least one complete window. */
  readonly pids: readonly number[];
  readonly lost: readonly Loss[];
}

/** The length of a window, in seconds. A worker that ends loses only the window that it was in. */
const WINDOW_S = 10;

/** The time after which a slot without a worker is asked again, in ms. */
const AGAIN_MS = 500;

/** A slot that has no worker to profile for this number of times is left out. */
const MAX_FAILURES = 30;

const NO_MODULE =
  'the app does not import ClusterModule, so its methods are not known; import ClusterModule.forRoot() and reload';

/**
 * Profiles all workers at the same time, in windows, until the time is over. A worker that is
 * replaced goes on in the next window of its slot.
 *
 * @throws ClusterUnreachableError, ClusterRefusedError if no window is complete.
 */
export async function collect(
  client: Pick<ControlClient, 'get' | 'post'>,
  seconds: number,
): Promise<Collected> {
  const followed = new Set(await servingSlots(client));
  const until = performance.now() + seconds * 1_000;
  const work = noWork();
  const pids = new Set<number>();
  const lost = new Map<string, Loss>();
  const record = async (slot: number, windowS: number): Promise<MethodProfile | undefined> => {
    try {
      return await recordMethods(client, slot, windowS);
    } catch (error) {
      if (!(error instanceof ClusterError)) throw error;
      lost.set(`${slot} ${error.message}`, { slot, reason: error.message });
      return undefined;
    }
  };
  const follow = async (slot: number): Promise<void> => {
    for (let failures = 0; failures < MAX_FAILURES;) {
      const left = Math.round((until - performance.now()) / 1_000);
      if (left < 1) return;
      const recorded = await record(slot, Math.min(WINDOW_S, left));
      if (recorded === undefined) {
        failures += 1;
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
        continue;
      }
      if (recorded.list === null) throw new ClusterRefusedError(NO_MODULE);
      failures = 0;
      addWindow(work, recorded);
      pids.add(recorded.pid);
    }
  };
  await Promise.all([...followed].map(follow));
  const losses = [...lost.values()];
  if (pids.size === 0) {
    const reasons = new Set(losses.map(({ reason }) => reason));
    throw new ClusterRefusedError(`no worker could be profiled: ${[...reasons].join('; ')}`);
  }
  return { work, pids: [...pids], lost: losses };
}

/** Has a worker write a profile with the methods of its app, and takes it out of the file. */
async function recordMethods(
  client: Pick<ControlClient, 'post'>,
  slot: number,
  seconds: number,
): Promise<MethodProfile> {
  const path = `/v1/workers/${slot}/cpu-profile?methods&seconds=${seconds}`;
  const { file } = await client.post<ProfileAnswer>(path);
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as MethodProfile;
  } catch (error) {
    throw new ClusterRefusedError(
      `cannot read the profile of worker=${slot}: ${(error as Error).message}; run the command where the cluster runs`,
    );
  } finally {
    rmSync(file, { force: true });
  }
}

async function servingSlots(client: Pick<ControlClient, 'get'>): Promise<readonly number[]> {
  const { cluster } = await client.get<ClusterStatus>('/v1/status');
  return cluster.workers.map(({ slot }) => slot);
}
