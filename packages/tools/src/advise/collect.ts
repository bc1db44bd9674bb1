import { readFileSync, rmSync } from 'node:fs';
import type { ControlClient } from '../cluster.js';
import { ToolError } from '../output.js';
import { addProfile, noWork, type Work } from './attribution.js';
import type { CpuProfile } from './profile.js';

export interface Collected {
  readonly work: Work;
  /** The number of workers whose profile is complete. */
  readonly workers: number;
  /** Why profiles are missing. */
  readonly lost: readonly string[];
}

/**
 * Profiles all workers at the same time.
 *
 * @throws ToolError if no profile is complete.
 */
export async function collect(
  client: Pick<ControlClient, 'status' | 'post'>,
  seconds: number,
): Promise<Collected> {
  const { cluster } = await client.status();
  // A slot that is being replaced is listed twice.
  const slots = [...new Set(cluster.workers.map(({ slot }) => slot))];
  const work = noWork();
  const lost: string[] = [];
  const profile = async (slot: number): Promise<void> => {
    try {
      addProfile(work, await record(client, slot, seconds));
    } catch (error) {
      if (!(error instanceof ToolError)) throw error;
      lost.push(`worker=${slot}: ${error.message}`);
    }
  };
  await Promise.all(slots.map(profile));
  const workers = slots.length - lost.length;
  if (workers === 0) throw new ToolError(`no worker could be profiled: ${lost.join('; ')}`);
  return { work, workers, lost };
}

/** Records a worker's profile, then reads and removes its file. */
async function record(
  client: Pick<ControlClient, 'post'>,
  slot: number,
  seconds: number,
): Promise<CpuProfile> {
  const path = `/v1/workers/${slot}/cpu-profile?seconds=${seconds}`;
  const { file } = await client.post<{ readonly file: string }>(path);
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as CpuProfile;
  } catch (error) {
    throw new ToolError(
      `its profile cannot be read: ${(error as Error).message}; run the command on the cluster's machine`,
    );
  } finally {
    rmSync(file, { force: true });
  }
}
