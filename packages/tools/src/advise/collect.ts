import { readFileSync, rmSync } from 'node:fs';
import type { ControlClient } from '../cluster.js';
import { ToolError } from '../output.js';
import { addWindow, noWork, type Work } from './attribution.js';
import type { CpuProfile } from './profile.js';

export interface Collected {
  readonly work: Work;
  /** Slots with at least one complete window. */
  readonly slots: readonly number[];
  /** Why windows are missing. */
  readonly lost: readonly string[];
}

/** The length of a window, in seconds. A worker that ends loses only the window that it was in. */
const WINDOW_S = 10;

/** After a failure, how long to wait for the slot's next worker, in ms. */
const AGAIN_MS = 1_000;

/**
 * Profiles all workers at the same time, in windows, until the time is over. A worker that is
 * replaced goes on in the next window of its slot.
 *
 * @throws ToolError if no window is complete.
 */
export async function collect(
  client: Pick<ControlClient, 'status' | 'post'>,
  seconds: number,
): Promise<Collected> {
  const { cluster } = await client.status();
  const until = performance.now() + seconds * 1_000;
  const work = noWork();
  const slots = new Set<number>();
  const lost = new Set<string>();
  const follow = async (slot: number): Promise<void> => {
    for (;;) {
      const left = Math.round((until - performance.now()) / 1_000);
      if (left < 1) return;
      try {
        addWindow(work, await record(client, slot, Math.min(WINDOW_S, left)));
        slots.add(slot);
      } catch (error) {
        if (!(error instanceof ToolError)) throw error;
        lost.add(`worker=${slot}: ${error.message}`);
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      }
    }
  };
  await Promise.all([...new Set(cluster.workers.map(({ slot }) => slot))].map(follow));
  if (slots.size === 0) throw new ToolError(`no worker could be profiled: ${[...lost].join('; ')}`);
  return { work, slots: [...slots], lost: [...lost] };
}

/** Has a worker write a profile, and reads and removes the file. */
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
      `its profile cannot be read: ${(error as Error).message}; run the command where the cluster runs`,
    );
  } finally {
    rmSync(file, { force: true });
  }
}
