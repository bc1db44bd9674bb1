import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { readStat } from '../bench/process-table.mjs';

/** The command line of a process, as `ps` shows it. */
export function commandLineOf(pid: number): string {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
}

/** Whether nothing is left of a process, not even a zombie. */
export function isReaped(pid: number): boolean {
  return !existsSync(`/proc/${pid}`);
}

/** Pids of the processes that `pid` has started, zombies too. */
export function childrenOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(readStat(name)?.[1]) === pid)
    .map(Number);
}

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
    const stat = readStat(`${pid}/task/${thread}`);
    return stat === undefined ? [] : [Number(stat[16])]; // the thread has ended
  });
}
