import type { InForce, MemoryOptions } from '../../../contract/options/index.js';

/** What to do about a worker's memory. */
export type MemoryVerdict = 'fine' | 'replace' | 'kill';

/** Above the hard limit a worker is killed, above the soft one replaced. */
export function judgeMemory(residentBytes: number, limits: InForce<MemoryOptions>): MemoryVerdict {
  if (residentBytes > limits.hardLimitBytes) return 'kill';
  return residentBytes > limits.softLimitBytes ? 'replace' : 'fine';
}
