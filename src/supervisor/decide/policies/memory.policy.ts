import type { InForce, MemoryOptions } from '../../../contract/options/index.js';

/** A worker above the hard limit is killed. A worker above the soft limit is replaced. */
export function judgeMemory(residentBytes: number, limits: InForce<MemoryOptions>) {
  if (residentBytes > limits.hardLimitBytes) return 'kill';
  return residentBytes > limits.softLimitBytes ? 'replace' : 'fine';
}

export function inMegabytes(bytes: number): string {
  return `${Math.round(bytes / 1e6)} MB`;
}
