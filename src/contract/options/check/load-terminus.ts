import type * as Terminus from '@nestjs/terminus';
import { loaded, refuse } from './load-peer.js';

const TERMINUS = '@nestjs/terminus';

/** Whether @nestjs/terminus is installed. If not, it may be a part of a bundle: see {@link loadTerminus}. */
export function hasTerminus(): boolean {
  const { resolve } = import.meta as Partial<ImportMeta>;
  try {
    return resolve?.(TERMINUS) !== undefined; // CommonJS has no such function
  } catch {
    return false;
  }
}

/** @throws ClusterConfigurationError if it is not installed. */
export async function loadTerminus(): Promise<typeof Terminus> {
  const install = `npm install ${TERMINUS} (with Nest 11: ${TERMINUS}@11)`;
  const found = await loaded(TERMINUS, import('@nestjs/terminus'));
  return found ?? refuse('health', `${TERMINUS}, which is not installed; run ${install}`);
}
