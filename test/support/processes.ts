import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** The command line of a process, as `ps` shows it. */
export function commandLineOf(pid: number): string {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
}

/** Whether nothing is left of a process, not even a zombie that nobody waited for. */
export function isReaped(pid: number): boolean {
  return !existsSync(`/proc/${pid}`);
}

/** Pids of the processes that `pid` has started, zombies too. */
export function childrenOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && parentOf(name) === pid)
    .map(Number);
}

/** Pid of the process that has started `pid`. */
export function parentOf(pid: string): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name of the program, in brackets, may hold anything.
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    return undefined; // the process has ended
  }
}
