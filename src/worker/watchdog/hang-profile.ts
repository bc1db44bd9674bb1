import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  HANG_PROFILE_MARGIN_MS,
  type ResolvedClusterOptions,
} from '../../contract/options/index.js';
import type { WorkerIdentity } from '../../contract/snapshot/index.js';

/** A CPU profile that is to be there before a hung worker is killed. */
export interface HangProfile {
  /** Time that the event loop has to be blocked before it begins. */
  readonly afterMs: number;
  readonly ms: number;
  readonly directory: string;
  /** Part of its file's name. */
  readonly name: string;
}

/** The profile that the watchdog records of a hang, and when; `undefined` for none. */
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
