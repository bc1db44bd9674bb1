import { readFileSync } from 'node:fs';

/**
 * Resident memory of a process as the kernel counts it, in bytes: known even
 * of one that is stopped or hung. `undefined` where there is no /proc, or no
 * such process any more.
 */
export function residentMemoryBytes(pid: number): number | undefined {
  try {
    // Made by the kernel on the spot: no disk that could keep the primary waiting.
    const [, kilobytes] =
      /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    return kilobytes === undefined ? undefined : Number(kilobytes) * 1024;
  } catch {
    return undefined;
  }
}
