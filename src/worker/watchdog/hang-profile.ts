import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  HANG_PROFILE_MARGIN_MS,
  type ResolvedClusterOptions,
} from '../../contract/options/index.js';
import type { WorkerIdentity } from '../../contract/snapshot/index.js';

/** A CPU profile of a hung worker. It must be written before the worker is killed. */
export interface HangProfile {
  /** For how long the event loop must have been blocked when the profile begins, in ms. */
  readonly afterMs: number;
  readonly ms: number;
  readonly directory: string;
  /** A part of the file's name. */
  readonly name: string;
}

/** How the watchdog records a profile of a hang. `undefined` if the watchdog records no profile. */
export function hangProfile(
  { watchdog, heartbeat }: Pick<ResolvedClusterOptions, 'watchdog' | 'heartbeat'>,
  { slot, generation, pid }: WorkerIdentity,
): HangProfile | undefined {
  const ms = watchdog === false ? 0 : watchdog.profileMs;
  if (ms === 0 || !Number.isFinite(heartbeat.timeoutMs)) return undefined;
  return {
    afterMs: heartbeat.timeoutMs - HANG_PROFILE_MARGIN_MS - ms,
    ms,
    directory: join(tmpdir(), `nestjs-cluster-${process.geteuid?.() ?? 'user'}`),
    name: `worker-${slot}-gen-${generation}-pid-${pid}`,
  };
}
