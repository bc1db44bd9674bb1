import { readFileSync } from 'node:fs';

/**
 * Resident memory of a process in bytes. Read from the kernel, so a stopped or hung process can be
 * measured too. `undefined` if there is no /proc, or if the process has exited.
 */
export function residentMemoryBytes(pid: number): number | undefined {
  try {
    // The kernel makes this file in memory, so a synchronous read waits for no disk.
    const [, kilobytes] =
      /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    return kilobytes === undefined ? undefined : Number(kilobytes) * 1024;
  } catch {
    return undefined;
  }
}
