import { readdirSync, readFileSync } from 'node:fs';

/** How many descriptors a process holds open. */
export function openDescriptorsOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

/** Resident memory of a process, in bytes. */
export function residentBytesOf(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))!;
  return Number(kilobytes) * 1024;
}

/** The nice values of a process's threads, beginning with the main thread. */
export function niceValuesOf(pid: number): number[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((thread) => {
    try {
      const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8');
      // The name of a thread may have spaces in it.
      return [Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16])];
    } catch (error) {
      // The thread has ended since the directory was read.
      if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code!)) return [];
      throw error;
    }
  });
}
