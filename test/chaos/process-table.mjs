import { readdirSync, readFileSync } from 'node:fs';

/** Pids of the live processes that a process has started. */
export function liveChildrenOf(pid) {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
    return children
      .split(' ')
      .map(Number)
      .filter((child) => child > 0 && isAlive(child));
  } catch {
    return []; // the process has ended
  }
}

/** A zombie has ended: only its parent has not looked yet. */
export function isAlive(pid) {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

/** Live processes whose environment holds a text. */
export function marked(text) {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && environmentOf(name).includes(text) && isAlive(name))
    .map(Number);
}

/** Numbers of the descriptors that a process has open. */
export function descriptorsOf(pid) {
  return readdirSync(`/proc/${pid}/fd`).map(Number);
}

export function residentBytesOf(pid) {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(kilobytes) * 1_024;
}

/** @returns whether it was there to be signalled. */
export function signal(pid, name) {
  try {
    return process.kill(pid, name);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
    return false;
  }
}

function environmentOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1');
  } catch {
    return ''; // it has ended, or belongs to another user
  }
}
